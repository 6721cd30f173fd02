/* SPDX-License-Identifier: BSD-3-Clause */
/* Ids, handles, pages and the index of ranges, without a communicator. */
#include <pthread.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/log.h"
#include "base/os.h"
#include "tests/pt.h"
#include "window_index.h"
#include "window_table.h"

static struct gin_i_window some(uint64_t local, uint64_t size)
{
    struct gin_i_window w = {.local = local, .size = size, .mode = GIN_I_WINDOW_STRIDE};
    return w;
}

TEST(handles)
{
    struct gi_window_table t;
    struct gin_i_window w = some(4096, 100);
    uint32_t id;
    if (!EXPECT_EQ_INT(gi_window_table_open(&t, 7), GIN_OK))
        return;
    EXPECT(gi_window_table_find(&t, 0) == NULL);
    EXPECT(gi_window_table_find(&t, GIN_I_WINDOW_LOCAL) == NULL);
    EXPECT_EQ_INT(gi_window_table_take(&t, &id), GIN_OK);
    EXPECT_EQ_INT(id, 0);
    EXPECT(gi_window_table_find(&t, (uint64_t)t.generation << 32) == NULL);
    uint64_t first = gi_window_table_publish(&t, id, &w);
    const struct gin_i_window *seen = gi_window_table_find(&t, first);
    if (EXPECT(seen != NULL))
        EXPECT_EQ_U64(seen->size, 100);
    EXPECT(gi_window_table_find(&t, first ^ (1ull << 63)) == NULL);
    EXPECT(gi_window_table_find(&t, first + 1) == NULL);
    gi_window_table_retract(&t, id);
    EXPECT(gi_window_table_find(&t, first) == NULL);
    gi_window_table_give(&t, id);
    EXPECT_EQ_INT(gi_window_table_take(&t, &id), GIN_OK);
    EXPECT_EQ_INT(id, 0);
    uint64_t second = gi_window_table_publish(&t, id, &w);
    EXPECT(second != first && gi_window_table_find(&t, first) == NULL);
    EXPECT(gi_window_table_find(&t, second) == seen);
    free(gi_window_table_close(&t));
}

TEST(generations_wrap)
{
    struct gi_window_table t;
    struct gin_i_window w = some(4096, 1);
    uint32_t id;
    EXPECT_EQ_INT(gi_window_table_open(&t, UINT64_MAX), GIN_OK);
    EXPECT_EQ_INT(gi_window_table_take(&t, &id), GIN_OK);
    t.generation = 0x7ffffffeu;
    EXPECT_EQ_U64(gi_window_table_publish(&t, id, &w) >> 32, 0x7fffffffu);
    EXPECT_EQ_U64(gi_window_table_publish(&t, id, &w) >> 32, 1);
    free(gi_window_table_close(&t));
}

/* One of two tables cannot get a page; undone on both, they go on with equal ids. */
TEST(failure_keeps_tables_equal)
{
    struct gi_window_table a, b;
    uint32_t x, y;
    EXPECT_EQ_INT(gi_window_table_open(&a, 1), GIN_OK);
    EXPECT_EQ_INT(gi_window_table_open(&b, 1), GIN_OK);
    for (unsigned i = 0; i < GIN_I_WINDOW_PAGE; i++) {
        EXPECT_EQ_INT(gi_window_table_take(&a, &x), GIN_OK);
        EXPECT_EQ_INT(gi_window_table_take(&b, &y), GIN_OK);
    }
    gi_os_inject(GI_OS_MMAP, 1, 1, ENOMEM);
    EXPECT_EQ_INT(gi_window_table_take(&a, &x), GIN_ENOMEM);
    gi_os_inject(GI_OS_MMAP, 0, 0, 0);
    EXPECT_EQ_INT(gi_window_table_take(&b, &y), GIN_OK);
    gi_window_table_give(&b, y);
    EXPECT_EQ_INT(a.live, b.live);
    uint64_t rng = PT_SEED;
    for (int i = 0; i < 5000; i++) {
        uint32_t r = (uint32_t)pt_below(&rng, 300);
        if (pt_below(&rng, 2) == 0 && r < a.made && gi_window_private(&a, r)->off == 0 && r < 200) {
            gi_window_private(&a, r)->off = gi_window_private(&b, r)->off = 1; /* is free */
            gi_window_table_give(&a, r);
            gi_window_table_give(&b, r);
        } else {
            EXPECT_EQ_INT(gi_window_table_take(&a, &x), GIN_OK);
            EXPECT_EQ_INT(gi_window_table_take(&b, &y), GIN_OK);
            if (!EXPECT_EQ_INT(x, y))
                break;
        }
    }
    free(gi_window_table_close(&a));
    free(gi_window_table_close(&b));
}

TEST(all_ids)
{
    struct gi_window_table t;
    struct gin_i_window w = some(4096, 1);
    uint32_t id = 0, last = 0;
    EXPECT_EQ_INT(gi_window_table_open(&t, 1), GIN_OK);
    for (uint32_t i = 0; i < GI_WINDOW_IDS; i++) {
        if (gi_window_table_take(&t, &id) != GIN_OK || id != i) {
            FAIL("id %u", i);
            break;
        }
        gi_window_table_publish(&t, id, &w);
    }
    EXPECT_EQ_INT(gi_window_table_take(&t, &last), GIN_ENOMEM);
    EXPECT_HAS(gin_last_error(), "1048576");
    EXPECT(gi_window_table_find(&t, GIN_I_WINDOW_LOCAL) == NULL);
    gi_window_table_give(&t, 77);
    EXPECT_EQ_INT(gi_window_table_take(&t, &last), GIN_OK);
    EXPECT_EQ_INT(last, 77);
    free(gi_window_table_close(&t));
}

TEST(empty_table_refuses_everything)
{
    const struct gin_i_window *const *empty = gi_window_table_empty();
    for (uint32_t i = 0; i < GIN_I_WINDOW_PAGES; i++)
        if (empty[i] == NULL || empty[i][255].handle != 0 || empty[i][0].size != 0)
            FAIL("page %u", i);
}

/* In a fork()ed child the table is readable and empty. */
TEST(child_finds_zeros)
{
    struct gi_window_table t;
    struct gin_i_window w = some(4096, 1);
    uint32_t id;
    int status = 0;
    EXPECT_EQ_INT(gi_window_table_open(&t, 1), GIN_OK);
    EXPECT_EQ_INT(gi_window_table_take(&t, &id), GIN_OK);
    uint64_t handle = gi_window_table_publish(&t, id, &w);
    EXPECT(gi_window_table_find(&t, handle) != NULL);
    pid_t pid = fork();
    if (pid == 0) {
        bool empty = gi_window_table_find(&t, handle) == NULL && gi_window_at(&t, id)->size == 0;
        _exit(empty && gi_window_table_find(&t, GIN_I_WINDOW_LOCAL) == NULL ? 0 : 1);
    }
    EXPECT_EQ_INT(waitpid(pid, &status, 0), pid);
    EXPECT_EQ_INT(status, 0);
    EXPECT(gi_window_table_find(&t, handle) != NULL);
    free(gi_window_table_close(&t));
}

/* ---- index ---- */

#define MODEL 300
struct model {
    uint64_t start[MODEL], size[MODEL], age[MODEL];
    bool live[MODEL];
};

static int model_find(const struct model *m, uint64_t addr)
{
    int best = -1;
    for (int i = 0; i < MODEL; i++)
        if (m->live[i] && addr >= m->start[i] && addr - m->start[i] < m->size[i] &&
            (best < 0 || m->size[i] < m->size[best] ||
             (m->size[i] == m->size[best] &&
              (m->start[i] > m->start[best] ||
               (m->start[i] == m->start[best] && m->age[i] > m->age[best])))))
            best = i;
    return best;
}

TEST(index_against_a_model)
{
    struct gi_window_index x = {0};
    static struct model m;
    uint64_t rng = PT_SEED, age = 0;
    memset(&m, 0, sizeof(m));
    for (int step = 0; step < 60000; step++) {
        int i = (int)pt_below(&rng, MODEL);
        uint64_t base = step < 50000 ? 100000 : UINT64_MAX - 1200;
        if (m.live[i]) {
            gi_window_index_remove(&x, m.start[i], m.size[i], (uint64_t)i);
            m.live[i] = false;
        } else if (gi_window_index_reserve(&x) == GIN_OK) {
            m.start[i] = base + pt_below(&rng, 600);
            m.size[i] = 1 + pt_below(&rng, pt_below(&rng, 2) ? 10 : 500);
            m.age[i] = age++;
            m.live[i] = true;
            gi_window_index_add(&x, m.start[i], m.size[i], (uint64_t)i);
        }
        for (int k = 0; k < 3; k++) {
            uint64_t addr = base + pt_below(&rng, 1200), id = 0;
            int want = model_find(&m, addr);
            bool found = gi_window_index_find(&x, addr, &id);
            if (found != (want >= 0) || (found && (int)id != want)) {
                FAIL("step %d: %llu is in %d, not in %d", step, (unsigned long long)addr, want,
                     found ? (int)id : -1);
                step = 60000;
                break;
            }
        }
    }
    gi_window_index_close(&x);
}

struct race {
    struct gi_window_index x;
    _Atomic bool stop;
    _Atomic uint64_t wrong;
};

/* Whatever the writer does, 500 lies in range 1, and in 2 only while that exists. */
static void *reader(void *arg)
{
    struct race *r = arg;
    while (!atomic_load(&r->stop)) {
        uint64_t id = 99;
        if (!gi_window_index_find(&r->x, 500, &id) || (id != 1 && id != 2))
            atomic_fetch_add(&r->wrong, 1);
    }
    return NULL;
}

TEST(index_readers_beside_a_writer)
{
    static struct race r;
    pthread_t threads[2];
    EXPECT_EQ_INT(gi_window_index_reserve(&r.x), GIN_OK);
    gi_window_index_add(&r.x, 0, 1000, 1);
    for (int i = 0; i < 2; i++)
        if (!EXPECT_EQ_INT(pthread_create(&threads[i], NULL, reader, &r), 0))
            return;
    for (uint64_t i = 0; i < 2000; i++) {
        EXPECT_EQ_INT(gi_window_index_reserve(&r.x), GIN_OK);
        gi_window_index_add(&r.x, 400, 200, 2);
        EXPECT_EQ_INT(gi_window_index_reserve(&r.x), GIN_OK);
        gi_window_index_add(&r.x, i % 2 ? 2000 + i : 100, 50, 3 + i);
        gi_window_index_remove(&r.x, 400, 200, 2);
        if (i % 4 == 3)
            for (uint64_t k = i - 3; k <= i; k++)
                gi_window_index_remove(&r.x, k % 2 ? 2000 + k : 100, 50, 3 + k);
    }
    atomic_store(&r.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    EXPECT_EQ_U64(atomic_load(&r.wrong), 0);
    EXPECT_EQ_U64(r.x.n, 1);
    gi_window_index_close(&r.x);
}
