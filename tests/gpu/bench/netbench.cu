/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels over the network between two ranks, beside what they stand on in the same round: the hop
 * from a kernel to the engine and back, the provider's own writes, the copies between GPU and host.
 * "netbench [ROUNDS]"; GINSHMEM_PROVIDER names the provider, default tcp. A row is the median over
 * the rounds, with the lowest and highest.
 */
#include "tests/gpu/bench/pair.h"
#include "tests/gpu/bench/raw.h"

#define BIG ((size_t)1 << 20)

static int n_rounds = 3;
static struct raw *raw;

/* ---- kernels: clocks per iteration after a tenth of them ---- */

struct args {
    gin_devcomm_t dev;
    gin_at_t dst, src, word; /* word: of host memory, so the CPU applies what is done to it */
    int me, peer, iters;
    uint64_t base; /* the signal before */
    size_t bytes;
    long long *out; /* clocks, then the first bad status */
};

#define WARM(i)              \
    if ((i) == a.iters / 10) \
    c = clock64()
#define TRY(call)                                   \
    do {                                            \
        int st_ = (call);                           \
        if (st_ != GIN_OK) {                        \
            *(volatile long long *)&a.out[1] = st_; \
            return;                                 \
        }                                           \
    } while (0)

__global__ void hop(args a)
{
    gin_t g;
    long long c = 0;
    uint64_t old;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        TRY(gin_amo_fetch_add(&g, gin_thread(), gin_world(&g), a.me, a.word, 1, &old));
    }
    a.out[0] = clock64() - c;
}

__global__ void pingpong(args a)
{
    gin_t g;
    long long c = 0;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++) {
        WARM(i);
        for (int half = 0; half < 2; half++)
            if (half == a.me)
                TRY(gin_put(&g, gin_thread(), gin_world(&g), a.peer, a.dst, a.src, a.bytes,
                            gin_weak_inc(0)));
            else
                TRY(gin_wait_signal(&g, gin_thread(), 0, a.base + (uint64_t)i + 1));
    }
    TRY(gin_quiet(&g, gin_thread()));
    a.out[0] = clock64() - c;
}

/* Every thread its own words or blocks; all of it is at the target in the end. */
__global__ void __launch_bounds__(1024) stream(args a)
{
    gin_t g;
    uint64_t off = threadIdx.x * 8ull;
    TRY(gin_open(&a.dev, 0, &g));
    for (int i = 0; i < a.iters; i++)
        TRY(gin_put(&g, gin_thread(), gin_world(&g), a.peer, gin_at(a.dst.win, a.dst.off + off),
                    gin_at(a.src.win, a.src.off + off), a.bytes, gin_no_action()));
    __syncthreads();
    TRY(gin_quiet(&g, gin_block()));
}

/* ---- the runs ---- */

/* What a side has: blocks in host and GPU memory, both halves symmetric: in, then out. */
struct run {
    struct side *s;
    args a;
    gin_at_t at[2]; /* host, GPU */
    char *mem[2];
    char *pinned;
    int clock_khz;
};

enum { HOST, GPU };
static const char *const kinds[] = {"host memory", "GPU memory"};

static void use(struct run *r, int kind, size_t bytes, int iters)
{
    r->a.dst = r->at[kind];
    r->a.src = gin_at(r->at[kind].win, r->at[kind].off + 2 * BIG);
    r->a.bytes = bytes;
    r->a.iters = iters;
    r->a.out[0] = r->a.out[1] = 0;
    meet();
}

/* Both are through; 0 where side 0 has nothing to note. */
static bool well(struct run *r, const std::string &name)
{
    CU(cudaStreamSynchronize(r->s->stream));
    long long st = r->a.out[1];
    if (st != 0)
        printf("%-44s        n/a side %d: %s\n", name.c_str(), r->s->me, gin_status_name((int)st));
    meet();
    return st == 0 && r->s->me == 0;
}

static double in_us(const struct run *r)
{
    return (double)r->a.out[0] * 1e3 / r->clock_khz / (r->a.iters - r->a.iters / 10);
}

static double hop_us(struct run *r)
{
    use(r, HOST, 8, 2000);
    if (r->s->me == 0)
        hop<<<1, 1, 0, r->s->stream>>>(r->a);
    if (!well(r, "engine hop"))
        return 0;
    note("engine hop", in_us(r), "us");
    return in_us(r);
}

static double raw_us(struct run *r)
{
    meet();
    double ns = raw != NULL ? raw_pingpong(raw, r->s->me, 8, 2000) : 0;
    if (r->s->me == 0 && ns > 0)
        note("raw: write 8 B, one way", ns / 1e3, "us");
    return ns / 1e3;
}

static void latencies(struct run *r)
{
    double floor = hop_us(r), bare = raw_us(r);
    for (int kind = HOST; kind <= GPU; kind++) {
        std::string name = std::string("put 8 B + signal, ") + kinds[kind] + ", one way";
        use(r, kind, 8, kind == HOST ? 1000 : 300);
        pingpong<<<1, 1, 0, r->s->stream>>>(r->a);
        r->a.base += (uint64_t)r->a.iters;
        if (!well(r, name))
            continue;
        note(name, in_us(r) / 2, "us");
        if (floor > 0 && bare > 0)
            note(name + " / (hop + raw)", in_us(r) / 2 / (floor + bare), "x");
    }
}

static void rates(struct run *r)
{
    static const int threads[] = {1, 8, 32, 256, 1024};
    meet();
    double bare = raw != NULL ? raw_stream(raw, r->s->me, 8, 100000, 64) : 0;
    if (r->s->me == 0 && bare > 0)
        note("raw: writes of 8 B", 1e3 / bare, "M/s");
    for (int n : threads) {
        std::string name = "descriptors, " + std::to_string(n) + " threads post puts of 8 B";
        use(r, HOST, 8, n == 1 ? 20000 : 102400 / n);
        double began = now_ns();
        if (r->s->me == 0)
            stream<<<1, (unsigned)n, 0, r->s->stream>>>(r->a);
        CU(cudaStreamSynchronize(r->s->stream));
        double took = now_ns() - began;
        if (well(r, name))
            note(name, (double)r->a.iters * n / took * 1e3, "M/s");
    }
}

/* GB/s of copies as the engine makes them: pinned, one behind the other. */
static double copies(struct run *r, cudaMemcpyKind how)
{
    const int n = 200;
    void *gpu = r->mem[GPU];
    for (int warm = 0; warm < 2; warm++) {
        double began = now_ns();
        for (int i = 0; i < (warm ? n : 5); i++)
            CU(cudaMemcpyAsync(how == cudaMemcpyDeviceToHost ? r->pinned : gpu,
                               how == cudaMemcpyDeviceToHost ? gpu : r->pinned, BIG, how,
                               r->s->stream));
        CU(cudaStreamSynchronize(r->s->stream));
        if (warm)
            return (double)n * (double)BIG / (now_ns() - began);
    }
    return 0;
}

static void bandwidths(struct run *r)
{
    double least = 0;
    meet();
    double ns = raw != NULL ? raw_stream(raw, r->s->me, BIG, 200, 16) : 0;
    if (r->s->me == 0) {
        double down = copies(r, cudaMemcpyDeviceToHost), up = copies(r, cudaMemcpyHostToDevice);
        note("copy 1 MiB, GPU to host", down, "GB/s");
        note("copy 1 MiB, host to GPU", up, "GB/s");
        least = std::min(down, up);
        if (ns > 0) {
            note("raw: writes of 1 MiB", (double)BIG / ns, "GB/s");
            least = std::min(least, (double)BIG / ns);
        }
    }
    for (int kind = HOST; kind <= GPU; kind++) {
        std::string name = std::string("puts of 1 MiB, ") + kinds[kind];
        use(r, kind, BIG, 200);
        double began = now_ns();
        if (r->s->me == 0)
            stream<<<1, 1, 0, r->s->stream>>>(r->a);
        CU(cudaStreamSynchronize(r->s->stream));
        double gbps = (double)r->a.iters * (double)BIG / (now_ns() - began);
        if (!well(r, name))
            continue;
        note(name, gbps, "GB/s");
        if (ns > 0)
            note(name + " / least of raw and copies", gbps / least, "x");
    }
}

/* What arrived last is what was sent. */
static void check(struct run *r)
{
    std::vector<unsigned char> got(BIG);
    for (int kind = HOST; r->s->me == 1 && kind <= GPU; kind++) {
        if (kind == GPU)
            CU(cudaMemcpy(got.data(), r->mem[kind], BIG, cudaMemcpyDeviceToHost));
        else
            memcpy(got.data(), r->mem[kind], BIG);
        for (size_t i = 0; i < BIG; i++)
            if (got[i] != 1)
                die("netbench", "bad data");
    }
}

static void body(struct side *s)
{
    struct run r = {};
    r.s = s;
    for (int kind = HOST; kind <= GPU; kind++) {
        r.mem[kind] =
            (char *)symmetric(s, kind == GPU ? GIN_KIND_CUDA : GIN_KIND_HOST, 4 * BIG, &r.at[kind]);
        if (kind == GPU)
            CU(cudaMemsetAsync(r.mem[kind] + 2 * BIG, s->me + 1, 2 * BIG, s->stream));
        else
            memset(r.mem[kind] + 2 * BIG, s->me + 1, 2 * BIG);
    }
    symmetric(s, GIN_KIND_HOST, 64, &r.a.word);
    r.a.dev = device_comm(s, 1);
    r.a.me = s->me;
    r.a.peer = s->peer;
    CU(cudaHostAlloc((void **)&r.a.out, 64, cudaHostAllocPortable));
    CU(cudaHostAlloc((void **)&r.pinned, BIG, cudaHostAllocPortable));
    CU(cudaDeviceGetAttribute(&r.clock_khz, cudaDevAttrClockRate, s->device));
    CU(cudaStreamSynchronize(s->stream));
    for (int i = 0; i < n_rounds; i++) {
        latencies(&r);
        rates(&r);
        bandwidths(&r);
    }
    check(&r);
    meet();
    GIN(gin_devcomm_destroy(s->comm, &r.a.dev));
}

static bool goal(const char *name, const char *what, double bound, bool below)
{
    for (const row &r : rows)
        if (r.name.find(name) != std::string::npos) {
            double v = middle(r.v);
            bool met = below ? v <= bound : v >= bound;
            printf("goal: %s %s %.2f: %.3f, %s\n", what, below ? "at most" : "at least", bound, v,
                   met ? "met" : "MISSED");
            return met;
        }
    printf("goal: %s: no figure\n", what);
    return false;
}

int main(int argc, char **argv)
{
    const char *provider = getenv("GINSHMEM_PROVIDER");
    if (argc > 1)
        n_rounds = std::max(1, atoi(argv[1]));
    if (provider == NULL || *provider == 0)
        setenv("GINSHMEM_PROVIDER", provider = "tcp", 1);
    raw = raw_open(provider, BIG);
    int status = pair_run(body, 200);
    if (status == 0) {
        printf("# two ranks over %s, %d rounds: medians (lowest - highest)\n",
               raw != NULL ? raw_name(raw) : provider, n_rounds);
        print_rows();
        goal("engine hop", "engine hop, us,", 2.8, true);
        goal("host memory, one way / ", "put + signal / (hop + raw)", 1.2, true);
        goal("puts of 1 MiB, GPU memory / ", "staging / least of raw and copies", 0.8, false);
    }
    raw_close(raw);
    return status;
}
