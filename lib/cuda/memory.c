/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking the driver about memory, and its IPC handles. An opened handle lives as long as anybody
 * here uses it and no longer: one that outlived its allocation could be taken for a later one.
 */
#include "cuda/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cuda/cu.h"
#include "cuda/gpu_int.h"

#if GI_HAVE_CUDA

typedef unsigned long long ull;

/* ---- what an address is ---- */

enum { TYPE, MANAGED, ORDINAL, CONTEXT, LEGACY, START, BYTES, THERE, ASKED };

static void ask(const struct gi_cu *cu, uint64_t addr, uint64_t answer[ASKED])
{
    CUpointer_attribute what[ASKED] = {
        [TYPE] = CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        [MANAGED] = CU_POINTER_ATTRIBUTE_IS_MANAGED,
        [ORDINAL] = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        [CONTEXT] = CU_POINTER_ATTRIBUTE_CONTEXT,
        [LEGACY] = CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        [START] = CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        [BYTES] = CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        [THERE] = CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
    };
    void *place[ASKED];
    for (int i = 0; i < ASKED; i++)
        place[i] = &answer[i];
    memset(answer, 0, ASKED * sizeof(*answer)); /* answers are narrower, some of them */
    if (cu->cuPointerGetAttributes(ASKED, what, place, addr) != CUDA_SUCCESS)
        memset(answer, 0, ASKED * sizeof(*answer));
}

void gi_gpu_look(const char *driver, uint64_t addr, struct gi_gpu_range *r)
{
    const struct gi_cu *cu = gi_cu_if_there(driver);
    uint64_t answer[ASKED];
    memset(r, 0, sizeof(*r));
    if (cu == NULL)
        return;
    ask(cu, addr, answer);
    r->device = (int)answer[ORDINAL];
    r->context = (void *)(uintptr_t)answer[CONTEXT];
    r->legacy = (answer[LEGACY] & 0xff) != 0;
    r->start = answer[START];
    r->bytes = answer[BYTES];
    if ((answer[MANAGED] & 0xff) != 0) {
        r->place = GI_GPU_MANAGED;
    } else if (answer[TYPE] == CU_MEMORYTYPE_DEVICE) {
        r->place = GI_GPU_DEVICE;
    } else if (answer[TYPE] == CU_MEMORYTYPE_HOST && answer[THERE] == addr) {
        r->place = GI_GPU_PINNED;
    }
}

/* There is none at addr, or the driver cannot say. */
static int no_memory_at(CUresult r, uint64_t addr)
{
    if (r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_NOT_FOUND)
        return gi_fail(GIN_EINVAL, "there is no GPU memory at %#llx", (ull)addr);
    return gi_cu_fail(r, "cuMemGetAddressRange of %#llx", (ull)addr);
}

int gi_gpu_allocation(struct gi_gpu *g, uint64_t addr, uint64_t *start, uint64_t *bytes)
{
    CUstreamCaptureMode mode;
    CUdeviceptr s = 0;
    size_t n = 0;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    st = no_memory_at(gi_cu()->cuMemGetAddressRange(&s, &n, addr), addr);
    gi_gpu_leave(mode);
    *start = s;
    *bytes = n;
    return st;
}

/* ---- IPC handles ---- */

/* One that is open. */
struct opened {
    struct opened *next;
    struct gi_gpu_ipc handle;
    void *context;
    uint64_t addr;
    unsigned users;
};

static struct {
    pthread_mutex_t lock;
    struct opened *list;
} ipc = {.lock = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(sizeof(CUipcMemHandle) == sizeof(struct gi_gpu_ipc), "a handle is a handle");

int gi_gpu_ipc_get(struct gi_gpu *g, uint64_t addr, struct gi_gpu_ipc *handle)
{
    CUstreamCaptureMode mode;
    CUipcMemHandle h;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    st = gi_cu_fail(gi_cu()->cuIpcGetMemHandle(&h, addr), "cuIpcGetMemHandle of %#llx on GPU %d",
                    (ull)addr, g->device);
    gi_gpu_leave(mode);
    if (st == GIN_OK)
        memcpy(handle, &h, sizeof(*handle));
    return st;
}

static int open_handle(struct gi_gpu *g, const struct gi_gpu_ipc *handle, uint64_t *addr)
{
    CUstreamCaptureMode mode;
    CUipcMemHandle h;
    CUdeviceptr got = 0;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    memcpy(&h, handle, sizeof(h));
    st = gi_cu_fail(gi_cu()->cuIpcOpenMemHandle(&got, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                    "cuIpcOpenMemHandle on GPU %d", g->device);
    gi_gpu_leave(mode);
    *addr = got;
    return st;
}

static void close_handle(struct gi_gpu *g, uint64_t addr)
{
    CUstreamCaptureMode mode;
    if (gi_gpu_enter(g, &mode) != GIN_OK)
        return;
    gi_cu()->cuIpcCloseMemHandle(addr);
    gi_gpu_leave(mode);
}

static struct opened **find_handle(const struct gi_gpu *g, const struct gi_gpu_ipc *handle)
{
    struct opened **o = &ipc.list;
    while (*o != NULL &&
           ((*o)->context != g->context || memcmp(&(*o)->handle, handle, sizeof(*handle)) != 0))
        o = &(*o)->next;
    return o;
}

/* Under the lock: who comes second must not find a handle that is only about to be open. */
static int use(struct gi_gpu *g, const struct gi_gpu_ipc *handle, uint64_t *addr)
{
    struct opened *o = *find_handle(g, handle);
    if (o == NULL) {
        o = calloc(1, sizeof(*o));
        if (o == NULL)
            return gi_fail(GIN_ENOMEM, "no memory for the handle of a peer's GPU memory");
        int st = open_handle(g, handle, &o->addr);
        if (st != GIN_OK) {
            free(o);
            return st;
        }
        o->handle = *handle;
        o->context = g->context;
        o->next = ipc.list;
        ipc.list = o;
    }
    o->users++;
    *addr = o->addr;
    return GIN_OK;
}

int gi_gpu_ipc_open(struct gi_gpu *g, const struct gi_gpu_ipc *handle, uint64_t *addr)
{
    pthread_mutex_lock(&ipc.lock);
    int st = use(g, handle, addr);
    pthread_mutex_unlock(&ipc.lock);
    return st;
}

void gi_gpu_ipc_close(struct gi_gpu *g, uint64_t addr)
{
    struct opened **p = &ipc.list, *o;
    pthread_mutex_lock(&ipc.lock);
    while ((o = *p) != NULL && (o->context != g->context || o->addr != addr))
        p = &o->next;
    if (o != NULL && --o->users == 0) {
        close_handle(g, addr);
        *p = o->next;
        free(o);
    }
    pthread_mutex_unlock(&ipc.lock);
}

int gi_gpu_befriend(struct gi_gpu *g, void *context)
{
    CUstreamCaptureMode mode;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    CUresult r = gi_cu()->cuCtxEnablePeerAccess(context, 0);
    gi_gpu_leave(mode);
    if (r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        r = CUDA_SUCCESS;
    return gi_cu_fail(r, "cuCtxEnablePeerAccess on GPU %d", g->device);
}

/* ---- mapped memory ---- */

/* Asked before the driver is asked for an object: that would be an error of the program to tools
 * that watch it. */
static bool is_of_a_pool(uint64_t addr)
{
    CUpointer_attribute what = CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
    void *pool = NULL, *place = &pool;
    return gi_cu()->cuPointerGetAttributes(1, &what, &place, addr) == CUDA_SUCCESS && pool != NULL;
}

/* The object behind an address, and from where to where it is mapped. */
static int piece_at(uint64_t addr, bool share, struct gi_gpu_piece *p)
{
    const struct gi_cu *cu = gi_cu();
    CUmemGenericAllocationHandle h;
    CUmemAllocationProp prop;
    CUdeviceptr start = 0;
    size_t bytes = 0;
    memset(&prop, 0, sizeof(prop));
    CUresult r = cu->cuMemGetAddressRange(&start, &bytes, addr);
    if (r != CUDA_SUCCESS)
        return no_memory_at(r, addr);
    if (is_of_a_pool(addr))
        return gi_fail(GIN_ENOTSUP,
                       "the GPU memory at %#llx is of a memory pool (cudaMallocAsync()), which "
                       "cannot be shared so; memory of cudaMalloc() and cuMemMap() can be "
                       "registered",
                       (ull)addr);
    r = cu->cuMemRetainAllocationHandle(&h, (void *)(uintptr_t)addr);
    if (r != CUDA_SUCCESS)
        return gi_fail(GIN_ENOTSUP,
                       "the GPU memory at %#llx has neither an IPC handle nor an object behind it "
                       "(cuMemRetainAllocationHandle: error %d); memory of cudaMalloc() and "
                       "cuMemMap() can be registered",
                       (ull)addr, (int)r);
    *p = (struct gi_gpu_piece){.object = h, .addr = start, .bytes = bytes};
    r = cu->cuMemGetAllocationPropertiesFromHandle(&prop, h);
    int st = gi_cu_fail(r, "cuMemGetAllocationPropertiesFromHandle");
    if (st == GIN_OK && prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        st = gi_fail(GIN_ENOTSUP, "the mapped memory at %#llx is not a GPU's", (ull)addr);
    if (st == GIN_OK && share &&
        !(prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
        st = gi_fail(GIN_ENOTSUP,
                     "the mapped GPU memory at %#llx cannot be shown to other processes: it was "
                     "made without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR",
                     (ull)addr);
    if (st != GIN_OK)
        cu->cuMemRelease(h);
    return st;
}

int gi_gpu_pieces(struct gi_gpu *g, uint64_t addr, uint64_t bytes, bool share,
                  struct gi_gpu_piece **pieces, uint32_t *n)
{
    CUstreamCaptureMode mode;
    struct gi_gpu_piece *all = NULL;
    uint32_t count = 0;
    uint64_t end = addr + bytes;
    int st = gi_gpu_enter(g, &mode);
    if (st != GIN_OK)
        return st;
    while (st == GIN_OK && addr < end) {
        struct gi_gpu_piece *more = realloc(all, (count + 1) * sizeof(*more));
        if (more == NULL) {
            st = gi_fail(GIN_ENOMEM, "no memory for %u pieces of GPU memory", count + 1);
            break;
        }
        all = more;
        st = piece_at(addr, share, &all[count]);
        if (st == GIN_OK)
            addr = all[count].addr + all[count].bytes, count++;
    }
    gi_gpu_leave(mode);
    if (st != GIN_OK) {
        gi_gpu_pieces_free(all, count);
        return st;
    }
    *pieces = all;
    *n = count;
    return GIN_OK;
}

void gi_gpu_pieces_free(struct gi_gpu_piece *pieces, uint32_t n)
{
    while (n-- > 0)
        gi_gpu_object_release(pieces[n].object);
    free(pieces);
}

#endif
