/* SPDX-License-Identifier: BSD-3-Clause */
/* The fat binary of ginperf_kernels.cu, as it is; NULL in a build without nvcc. */
#include "ginperf.h"

#if GI_HAVE_CUDA
__asm__(".section .rodata\n"
        ".balign 64\n"
        "perf_cuda_fatbin:\n"
        ".incbin \"lib/tools/ginperf_kernels.fatbin\"\n"
        ".balign 64\n"
        ".previous\n");
extern const unsigned char perf_cuda_fatbin[];
const void *const perf_cuda_image = perf_cuda_fatbin;
#else
const void *const perf_cuda_image = NULL;
#endif
