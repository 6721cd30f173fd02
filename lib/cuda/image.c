/* SPDX-License-Identifier: BSD-3-Clause */
/* The fat binary of the library's kernels, as it is; NULL in a build without nvcc. */
#include "cuda/launch.h"

#if GI_HAVE_CUDA
__asm__(".section .rodata\n"
        ".balign 64\n"
        "gi_kernels_fatbin:\n"
        ".incbin \"lib/cuda/kernels/stream.fatbin\"\n"
        ".balign 64\n"
        ".previous\n");
extern const unsigned char gi_kernels_fatbin[] __attribute__((visibility("hidden")));
const void *const gi_kernels_image = gi_kernels_fatbin;
#else
const void *const gi_kernels_image = NULL;
#endif
