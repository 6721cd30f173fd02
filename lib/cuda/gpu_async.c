/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies under way. The calling thread has adopted its GPU, so that nothing is pushed and popped.
 */
#include "cuda/gpu.h"

#include "base/log.h"
#include "cuda/gpu_int.h"

#if GI_HAVE_CUDA

int gi_gpu_adopt(struct gi_gpu *g)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gi_cu()->cuThreadExchangeStreamCaptureMode(&mode);
    return gi_cu_fail(gi_cu()->cuCtxSetCurrent(g->context), "cuCtxSetCurrent for GPU %d",
                      g->device);
}

int gi_gpu_copy_start(void *stream, uint64_t to, uint64_t from, uint64_t bytes)
{
    return gi_cu_fail(gi_cu()->cuMemcpyAsync(to, from, bytes, stream),
                      "cuMemcpyAsync of %llu bytes from %#llx to %#llx", (unsigned long long)bytes,
                      (unsigned long long)from, (unsigned long long)to);
}

int gi_gpu_stamp(void *stream, uint64_t addr, uint64_t value)
{
    return gi_cu_fail(
        gi_cu()->cuStreamWriteValue64(stream, addr, value, CU_STREAM_WRITE_VALUE_DEFAULT),
        "cuStreamWriteValue64 to %#llx", (unsigned long long)addr);
}

int gi_gpu_copy_begin(struct gi_gpu *g, void *stream, uint64_t to, uint64_t from, uint64_t bytes,
                      uint64_t stamp_addr, uint64_t stamp)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    st = gi_gpu_copy_start(stream, to, from, bytes);
    if (st == GIN_OK)
        st = gi_gpu_stamp(stream, stamp_addr, stamp);
    gi_gpu_leave(mode);
    return st;
}

#endif
