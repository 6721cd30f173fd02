/* SPDX-License-Identifier: BSD-3-Clause */
/* BL-46: two copies of the library in one process, each with its own state, both work. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#include "tests/mp.h"

struct copy {
    void *handle;
    int (*init)(const gin_config_t *, gin_comm_t **);
    int (*finalize)(gin_comm_t *);
    int (*size)(const gin_comm_t *);
    void *(*calloc)(gin_comm_t *, size_t, size_t);
    int (*barrier)(gin_comm_t *);
    gin_comm_t *comm;
    char *block;
};

static bool load(struct copy *c, const char *path)
{
    c->handle = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    if (c->handle == NULL)
        return false;
    *(void **)&c->init = dlsym(c->handle, "gin_init");
    *(void **)&c->finalize = dlsym(c->handle, "gin_finalize");
    *(void **)&c->size = dlsym(c->handle, "gin_size");
    *(void **)&c->calloc = dlsym(c->handle, "gin_calloc");
    *(void **)&c->barrier = dlsym(c->handle, "gin_comm_barrier");
    return EXPECT(c->init && c->finalize && c->size && c->calloc && c->barrier);
}

MP_TEST_OPT(bl_46, .ranks = "1", .bare = true, .only = MP_PROCS)
{
    struct copy c[2];
    const char *path = ".libs/libginshmem.so"; /* of the build folder */
    (void)mp;
#if MP_FACTOR > 1
    MP_SKIP("sanitizers do not load twice");
#endif
    if (access(path, R_OK) != 0)
        MP_SKIP("%s is not there", path);
    if (!load(&c[0], path))
        MP_SKIP("dlmopen: %s", dlerror());
    if (!load(&c[1], path))
        MP_SKIP("dlmopen, the second: %s", dlerror());
    EXPECT(c[0].init != c[1].init);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ_INT(c[i].size(NULL), -1);
        EXPECT_EQ_INT(c[i].init(NULL, &c[i].comm), GIN_OK);
        EXPECT_EQ_INT(c[i].size(c[i].comm), 1);
        c[i].block = c[i].calloc(c[i].comm, 1, 1000);
        if (!EXPECT(c[i].block != NULL))
            return;
        memset(c[i].block, i + 1, 1000);
    }
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ_INT(c[i].barrier(c[i].comm), GIN_OK);
        EXPECT_FILLED(c[i].block, 1000, (unsigned char)(i + 1));
        EXPECT_EQ_INT(c[i].finalize(c[i].comm), GIN_OK);
    }
}
