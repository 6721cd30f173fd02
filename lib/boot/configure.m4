# SPDX-License-Identifier: BSD-3-Clause
# Headers of the process managers. Their libraries are not linked: the launcher that uses one brings
# it, and lib/boot opens it at run time, so that one library serves every launcher and none.

AC_DEFUN([GI_PROBE_PMIX], [
GI_WITH([pmix], [join jobs started through PMIx])
PMIX_CFLAGS=
gi_found=no gi_text="switched off"
AS_IF([test "$gi_with_pmix" != no], [
    GI_PKG([pmix], [PMIX], [pmix >= 3])
    gi_found=$gi_pkg_pmix gi_text=$gi_pkg_pmix_text
    AS_IF([test $gi_found = no && test -r "$gi_pmix_dir/include/pmix.h"],
        [PMIX_CFLAGS="-I$gi_pmix_dir/include"])
    gi_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $PMIX_CFLAGS"
    AC_CHECK_HEADER([pmix.h],
        [AS_IF([test $gi_found = no], [gi_found=yes gi_text="header found"])
         gi_text="$gi_text, library opened at run time"],
        [gi_found=no gi_text="no usable pmix.h"])
    AS_IF([test -n "$gi_pmix_dir" && test "$gi_pkg_pmix" = no && test -z "$PMIX_CFLAGS"],
        [gi_found=no gi_text="no pmix.pc and no include/pmix.h in $gi_pmix_dir"])
    CPPFLAGS=$gi_cppflags
])
AC_SUBST([PMIX_CFLAGS])
GI_HAVE([pmix], [PMIX], [$gi_found], [$gi_text])
])

AC_DEFUN([GI_PROBE_PMI2], [
GI_WITH([pmi2], [join jobs started through PMI-2 (Slurm)])
PMI2_CFLAGS=
gi_found=no gi_text="switched off"
AS_IF([test "$gi_with_pmi2" != no], [
    AS_IF([test -n "$gi_pmi2_dir"], [PMI2_CFLAGS="-I$gi_pmi2_dir/include"])
    gi_cppflags=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $PMI2_CFLAGS"
    AC_CHECK_HEADER([slurm/pmi2.h],
        [gi_found=yes gi_text="slurm/pmi2.h, library opened at run time"],
        [gi_found=no gi_text="no slurm/pmi2.h"])
    AS_IF([test -n "$gi_pmi2_dir" && ! test -r "$gi_pmi2_dir/include/slurm/pmi2.h"],
        [gi_found=no gi_text="no include/slurm/pmi2.h in $gi_pmi2_dir"])
    CPPFLAGS=$gi_cppflags
])
AC_SUBST([PMI2_CFLAGS])
GI_HAVE([pmi2], [PMI2], [$gi_found], [$gi_text])
])
