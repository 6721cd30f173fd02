/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rolling comparison: values on a wheel of `bits` bits (1..64). Signals and counters wrap; a wait
 * for `least` is over when the value is at least `least`, that is, at most half a turn ahead.
 * The public headers carry the rule (gin_rolling_le), since inline waits need it; this is its home
 * in the library.
 */
#ifndef GI_BASE_ROLLING_H
#define GI_BASE_ROLLING_H

#include <ginshmem/impl/rolling.h>

#endif
