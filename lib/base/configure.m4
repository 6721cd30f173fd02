# SPDX-License-Identifier: BSD-3-Clause
# What all probes share: the tri-state --with-x switch, the compiler's switches, the summary.

# GI_WITH(name, what): --with-name[=yes|no|auto|DIR]. Sets gi_with_NAME to yes, no or auto and
# gi_NAME_dir to DIR or "". DIR means yes, and only what lies below DIR counts.
AC_DEFUN([GI_WITH], [
AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1@<:@=yes|no|auto|DIR@:>@], [$2 @<:@auto@:>@])],
    [], [with_$1=auto])
gi_$1_dir=
AS_CASE([$with_$1],
    [yes|no|auto], [gi_with_$1=$with_$1],
    [/*], [gi_with_$1=yes
           gi_$1_dir=$with_$1],
    [AC_MSG_ERROR([--with-$1=$with_$1: give yes, no, auto or an absolute path])])
])

# GI_HAVE(name, NAME, found, where or why not): close a probe. Fails when the user asked by name for
# what is not there; defines GI_HAVE_NAME to 0 or 1 and the conditional HAVE_NAME.
AC_DEFUN([GI_HAVE], [
AS_IF([test "$gi_with_$1" = yes && test "$3" != yes],
    [AC_MSG_ERROR([--with-$1 was asked for, but: $4])])
AS_IF([test "$3" = yes], [gi_have_$1=1], [gi_have_$1=0])
AC_DEFINE_UNQUOTED([GI_HAVE_$2], [$gi_have_$1], [1 if built with $1])
AM_CONDITIONAL([HAVE_$2], [test $gi_have_$1 = 1])
gi_line_$1="$3 ($4)"
AC_MSG_CHECKING([whether to use $1])
AC_MSG_RESULT([$gi_line_$1])
])

# GI_PKG(name, VARS, module): pkg-config in DIR first. Sets gi_pkg_name to yes or no, VARS_CFLAGS,
# VARS_LIBS, gi_pkg_name_text (version, or what is missing).
AC_DEFUN([GI_PKG], [
gi_pkg_path=$PKG_CONFIG_PATH
AS_IF([test -n "$gi_$1_dir"],
    [PKG_CONFIG_PATH=$gi_$1_dir/lib/pkgconfig:$gi_$1_dir/lib64/pkgconfig:$gi_$1_dir/share/pkgconfig:$PKG_CONFIG_PATH
     export PKG_CONFIG_PATH])
PKG_CHECK_MODULES([$2], [$3],
    [gi_pkg_$1=yes
     gi_pkg_$1_text="version `$PKG_CONFIG --modversion "$3" 2>/dev/null | head -n 1`"],
    [gi_pkg_$1=no
     gi_pkg_$1_text="pkg-config does not find $3"])
AS_IF([test "$gi_pkg_$1" = yes && test -n "$gi_$1_dir"],
    [AS_CASE([`$PKG_CONFIG --variable=pcfiledir "$3"`],
        [$gi_$1_dir/*], [],
        [gi_pkg_$1=no $2_CFLAGS= $2_LIBS=
         gi_pkg_$1_text="no $1.pc below $gi_$1_dir"])])
PKG_CONFIG_PATH=$gi_pkg_path
])

# GI_SWITCH(name, what): --enable-name, default no; sets enable_name.
AC_DEFUN([GI_SWITCH], [
AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2 @<:@no@:>@])], [], [enable_$1=no])
])

AC_DEFUN([GI_COMPILER], [
GI_SWITCH([werror], [warnings are errors])
GI_SWITCH([asan], [build with AddressSanitizer])
GI_SWITCH([ubsan], [build with UndefinedBehaviorSanitizer])
GI_SWITCH([tsan], [build with ThreadSanitizer])
GI_SWITCH([coverage], [build for gcov])
GI_SWITCH([fuzz], [build the fuzz targets of make fuzz; needs clang])
AS_IF([test "$enable_asan$enable_tsan" = yesyes],
    [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
GI_CFLAGS="-std=gnu11 -Wall -Wextra -Wundef -fvisibility=hidden"
GI_LDFLAGS=
AS_IF([test "$enable_werror" = yes], [GI_CFLAGS="$GI_CFLAGS -Werror"])
gi_sanitize=
AS_IF([test "$enable_asan" = yes], [gi_sanitize="$gi_sanitize -fsanitize=address"])
# hwloc unloads its component for PCI, and nothing can name whose the leaks were by then.
AS_IF([test "$enable_asan" = yes],
    [SANITIZED_ENV='HWLOC_COMPONENTS=-pci; export HWLOC_COMPONENTS;'], [SANITIZED_ENV=])
AC_SUBST([SANITIZED_ENV])
AS_IF([test "$enable_ubsan" = yes],
    [gi_sanitize="$gi_sanitize -fsanitize=undefined -fno-sanitize-recover=undefined"])
AS_IF([test "$enable_tsan" = yes],
    [gi_sanitize="$gi_sanitize -fsanitize=thread"
     # gcc warns that it does not follow fences; clang does not know the switch.
     AS_IF([echo | $CC -Werror -Wno-tsan -x c -c -o conftest.o - 2>/dev/null],
         [GI_CFLAGS="$GI_CFLAGS -Wno-tsan"])
     rm -f conftest.o])
AS_IF([test -n "$gi_sanitize"],
    [GI_CFLAGS="$GI_CFLAGS$gi_sanitize -fno-omit-frame-pointer"
     GI_LDFLAGS="$GI_LDFLAGS$gi_sanitize"])
AS_IF([test "$enable_fuzz" = yes], [GI_CFLAGS="$GI_CFLAGS -fsanitize=fuzzer-no-link"])
AM_CONDITIONAL([FUZZ], [test "$enable_fuzz" = yes])
AS_IF([test "$enable_coverage" = yes],
    [GI_CFLAGS="$GI_CFLAGS --coverage"
     GI_LDFLAGS="$GI_LDFLAGS --coverage"])
AC_SUBST([GI_CFLAGS])
AC_SUBST([GI_LDFLAGS])
AC_CACHE_CHECK([whether the compiler takes$gi_sanitize $GI_CFLAGS], [gi_cv_flags_work], [
    gi_cflags=$CFLAGS
    CFLAGS="$CFLAGS $GI_CFLAGS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdint.h>]], [[uint64_t w = 1; return (int)__atomic_fetch_add(&w, 1, __ATOMIC_ACQ_REL) - 1;]])],
        [gi_cv_flags_work=yes], [gi_cv_flags_work=no])
    CFLAGS=$gi_cflags])
AS_IF([test "$gi_cv_flags_work" != yes],
    [AC_MSG_ERROR([$CC does not build a program with$gi_sanitize and 64-bit atomics; see config.log])])
AM_CONDITIONAL([SANITIZED], [test -n "$gi_sanitize"])
])

# What the library asks of the operating system: Linux, 64 bits.
AC_DEFUN([GI_SYSTEM], [
AC_MSG_CHECKING([for 64-bit Linux])
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [[
#if !defined(__linux__) || __SIZEOF_POINTER__ != 8
#error no
#endif
    ]])], [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([ginshmem is written for Linux with 64-bit pointers])])
AC_SEARCH_LIBS([pthread_create], [pthread], [], [AC_MSG_ERROR([no threads])])
AC_SEARCH_LIBS([dlopen], [dl], [], [AC_MSG_ERROR([no dlopen])])
])

# hwloc tells cores, NUMA nodes, GPUs and NICs.
AC_DEFUN([GI_PROBE_HWLOC], [
PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.0],
    [gi_line_hwloc="version `$PKG_CONFIG --modversion hwloc`"],
    [AC_MSG_ERROR([hwloc >= 2.0 is required (Debian: libhwloc-dev): $HWLOC_PKG_ERRORS])])
])

AC_DEFUN([GI_SUMMARY], [
AS_ECHO(["
ginshmem $PACKAGE_VERSION
  install to       $prefix
  compiler         $CC, flags $CFLAGS
  warnings fatal   $enable_werror
  sanitizers      ${gi_sanitize:- none}
  coverage         $enable_coverage
  hwloc            $gi_line_hwloc
  libfabric        $gi_line_libfabric
  ibverbs          $gi_line_ibverbs
  CUDA             $gi_line_cuda
  PMIx             $gi_line_pmix
  PMI-2            $gi_line_pmi2
  jansson          $gi_line_jansson
  PMI-1, TCP, self built in
"])
])
