/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GDRCopy without GPU: memory of the driver without GPU is mapped already, so a mapping is the
 * memory itself. What is pinned must consist of whole pages of a GPU, and what is copied must be
 * mapped. FAKE_GDR=unloaded: there is no kernel module.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API  __attribute__((visibility("default")))
#define PAGE 65536u
#define PINS 256

struct handle {
    unsigned long h;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pin {
    uintptr_t at;
    size_t size;
    int mapped;
} pins[PINS];
static long copies;
static int connection;

void *gdr_open(void);
int gdr_close(void *g);
int gdr_pin_buffer(void *g, unsigned long at, size_t size, uint64_t token, uint32_t space,
                   struct handle *handle);
int gdr_unpin_buffer(void *g, struct handle handle);
int gdr_map(void *g, struct handle handle, void **va, size_t size);
int gdr_unmap(void *g, struct handle handle, void *va, size_t size);
int gdr_copy_to_mapping(struct handle handle, void *mapped, const void *host, size_t size);
int gdr_copy_from_mapping(struct handle handle, void *host, const void *mapped, size_t size);
long fake_gdr_copies(void);

API void *gdr_open(void)
{
    const char *how = getenv("FAKE_GDR");
    return how != NULL && strcmp(how, "unloaded") == 0 ? NULL : &connection;
}

API int gdr_close(void *g)
{
    return g == &connection ? 0 : EINVAL;
}

API int gdr_pin_buffer(void *g, unsigned long at, size_t size, uint64_t token, uint32_t space,
                       struct handle *handle)
{
    int rc = ENOMEM;
    if (g != &connection || token != 0 || space != 0 || at % PAGE != 0 || size % PAGE != 0)
        return EINVAL;
    pthread_mutex_lock(&lock);
    for (int i = 0; rc != 0 && i < PINS; i++)
        if (pins[i].size == 0) {
            pins[i] = (struct pin){at, size, 0};
            handle->h = (unsigned long)i + 1;
            rc = 0;
        }
    pthread_mutex_unlock(&lock);
    return rc;
}

API int gdr_unpin_buffer(void *g, struct handle handle)
{
    struct pin *p = &pins[handle.h - 1];
    if (g != &connection || p->mapped)
        return EINVAL;
    p->size = 0;
    return 0;
}

API int gdr_map(void *g, struct handle handle, void **va, size_t size)
{
    struct pin *p = &pins[handle.h - 1];
    if (g != &connection || size != p->size)
        return EINVAL;
    p->mapped = 1;
    *va = (void *)p->at;
    return 0;
}

API int gdr_unmap(void *g, struct handle handle, void *va, size_t size)
{
    struct pin *p = &pins[handle.h - 1];
    if (g != &connection || (uintptr_t)va != p->at || size != p->size)
        return EINVAL;
    p->mapped = 0;
    return 0;
}

static void check(struct handle handle, const void *mapped, size_t size)
{
    const struct pin *p = &pins[handle.h - 1];
    uintptr_t at = (uintptr_t)mapped;
    if (!p->mapped || at < p->at || at - p->at > p->size || size > p->size - (at - p->at))
        abort(); /* the CPU would fault there */
    __atomic_add_fetch(&copies, 1, __ATOMIC_RELAXED);
}

API int gdr_copy_to_mapping(struct handle handle, void *mapped, const void *host, size_t size)
{
    check(handle, mapped, size);
    memcpy(mapped, host, size);
    return 0;
}

API int gdr_copy_from_mapping(struct handle handle, void *host, const void *mapped, size_t size)
{
    check(handle, mapped, size);
    memcpy(host, mapped, size);
    return 0;
}

API long fake_gdr_copies(void)
{
    return __atomic_load_n(&copies, __ATOMIC_RELAXED);
}
