/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies under way. The calling thread has adopted its GPU, so that nothing is pushed and popped.
 */
#include "cuda/gpu.h"

#include "base/log.h"
#include "cuda/cu.h"

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

int gi_gpu_event_mark(void *event, void *stream)
{
    return gi_cu_fail(gi_cu()->cuEventRecord(event, stream), "cuEventRecord");
}

int gi_gpu_event_passed(void *event, bool *passed)
{
    CUresult r = gi_cu()->cuEventQuery(event);
    *passed = r != CUDA_ERROR_NOT_READY;
    return *passed ? gi_cu_fail(r, "cuEventQuery") : GIN_OK;
}

#endif
