/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on streams that the copy engine cannot do: each is the device code's own call, by one
 * thread, a warp or a block. A failure is taken down in a pinned word, the first one stays.
 */
#include "cuda/kernels/stream.h"

#ifndef GI_KERNEL /* a test's compiler has its own */
#define GI_KERNEL extern "C" __global__ void
#define GI_ARGS   const __grid_constant__ struct gi_stream_job
#endif

GIN_DEV int is_alive(const struct gi_stream_job &j)
{
    const struct gin_i_dc *dc = (const struct gin_i_dc *)j.dev.state;
    return ((gin_i_nc_u32(&dc->magic) ^ GIN_DEVCOMM_MAGIC) |
            (gin_i_nc_u64(&dc->serial) ^ j.dev.serial)) == 0;
}

/* Of a graph that outlived its device communicator nobody asks; the word may be another's by now.
 */
GIN_DEV void report(const struct gi_stream_job &j, int st)
{
    if (GIN_LIKELY(st == GIN_OK) || threadIdx.x != 0 || !is_alive(j))
        return;
    if (gin_i_ld_relaxed_sys(j.report) == 0)
        gin_i_st_relaxed_sys(j.report, (uint64_t)j.kernel << 32 | (uint32_t)st);
    gin_i_fence_sys();
}

GI_KERNEL gi_stream_put(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK)
        st = gin_put(&g, gin_block(), j.team, j.peer, j.dst, j.src, j.bytes, j.remote);
    if (st == GIN_OK && j.flush)
        st = gin_flush(&g, gin_block());
    report(j, st);
}

/*
 * A word and a slot signal, at addresses that the host has found. What so small a put costs here is
 * instructions, which no cache holds yet: these are few.
 */
GI_KERNEL gi_stream_word(GI_ARGS j)
{
    if (GIN_UNLIKELY(!is_alive(j)))
        return;
    uint64_t v = gin_i_ld_generic((const uint64_t *)j.src.off);
    gin_i_st_relaxed_sys((uint64_t *)j.dst.off, v);
    gin_i_red_add_release_sys((uint64_t *)j.expected, j.value);
}

GI_KERNEL gi_stream_value(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK)
        st = gin_put_value(&g, gin_thread(), j.team, j.peer, j.dst, j.value, j.bytes, j.remote);
    report(j, st);
}

GI_KERNEL gi_stream_get(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK)
        st = gin_get(&g, gin_block(), j.team, j.peer, j.src, j.dst, j.bytes);
    if (st == GIN_OK && j.flush)
        st = gin_flush(&g, gin_block());
    report(j, st);
}

GI_KERNEL gi_stream_signal(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK)
        st = gin_signal(&g, gin_thread(), j.team, j.peer, j.remote);
    report(j, st);
}

GI_KERNEL gi_stream_wait(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK && j.how == GI_STREAM_AT_LEAST)
        st = gin_wait_signal_x(&g, gin_thread(), j.id, j.value, &j.opt);
    else if (st == GIN_OK)
        st = gin_wait_signal_until(&g, gin_thread(), j.id, (gin_cmp_t)j.how, j.value, &j.opt);
    report(j, st);
}

GI_KERNEL gi_stream_wait_at(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK && j.how == GI_STREAM_AT_LEAST)
        st = gin_wait_signal_at(&g, gin_thread(), j.dst, j.value, &j.opt);
    else if (st == GIN_OK)
        st = gin_wait_signal_until_at(&g, gin_thread(), j.dst, (gin_cmp_t)j.how, j.value, &j.opt);
    report(j, st);
}

GI_KERNEL gi_stream_consume(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK)
        st = j.how ? gin_consume_signal_at(&g, j.dst, j.value)
                   : gin_consume_signal(&g, j.id, j.value);
    report(j, st);
}

GI_KERNEL gi_stream_amo(GI_ARGS j)
{
    gin_t g;
    uint64_t old = 0;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK)
        st = gin_i_dev_amo(&g, gin_thread(), j.team, j.peer, j.dst, (int)j.how, (uint32_t)j.bytes,
                           j.value, j.expected, &old);
    if (st == GIN_OK && j.old != NULL) {
        if (j.bytes == 8)
            *j.old = old;
        else
            *(uint32_t *)j.old = (uint32_t)old;
    }
    report(j, st);
}

GI_KERNEL gi_stream_complete(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    if (st == GIN_OK)
        st = j.how == GI_STREAM_FLUSH   ? gin_flush(&g, gin_thread())
             : j.how == GI_STREAM_FENCE ? gin_fence_all(&g, gin_thread())
                                        : gin_quiet(&g, gin_thread());
    report(j, st);
}

GI_KERNEL gi_stream_barrier(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, GIN_ALL_CONTEXTS, &g);
    if (st == GIN_OK)
        st = gin_barrier(&g, gin_warp(), j.which, j.id, GIN_ORDER_ACQ_REL, j.how);
    report(j, st);
}

GI_KERNEL gi_stream_coll(GI_ARGS j)
{
    gin_t g;
    int st = gin_open(&j.dev, j.context, &g);
    struct gin_i_coll_args a = {j.team,       j.dst,          j.src,        j.bytes, j.dst_counts,
                                j.dst_firsts, j.src_counts,   j.src_firsts, j.call,  j.id,
                                j.type,       (int32_t)j.how, j.peer};
    if (st == GIN_OK)
        st = gin_i_coll(&g, gin_block(), &a);
    report(j, st);
}
