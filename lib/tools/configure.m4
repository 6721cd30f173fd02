# SPDX-License-Identifier: BSD-3-Clause
# jansson writes gininfo --json.

AC_DEFUN([GI_PROBE_JANSSON], [
GI_WITH([jansson], [gininfo --json])
gi_found=no gi_text="switched off"
AS_IF([test "$gi_with_jansson" != no], [
    GI_PKG([jansson], [JANSSON], [jansson >= 2.10])
    gi_found=$gi_pkg_jansson gi_text=$gi_pkg_jansson_text
])
GI_HAVE([jansson], [JANSSON], [$gi_found], [$gi_text])
])
