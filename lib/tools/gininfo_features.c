/* SPDX-License-Identifier: BSD-3-Clause */
/* Requirements of networks, GPUs and launchers, as gininfo_check.c lists them. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
#include "base/os.h"
#include "cuda/gdr.h"
#include "lib/tools/gininfo.h"
#include "transport/ofi/ofi_info.h"

/* ---- networks ---- */

enum info_state info_check_providers(char *why, size_t n)
{
    struct gi_ofi_found found[16];
    size_t many = gi_ofi_probe(found, sizeof(found) / sizeof(found[0]));
    why[0] = 0;
    for (size_t i = 0; i < many; i++)
        if (found[i].have && strlen(why) + 24 < n)
            snprintf(why + strlen(why), n - strlen(why), "%s%s", why[0] != 0 ? " " : "",
                     found[i].provider);
    return why[0] != 0 ? INFO_PASS
                       : info_said(false, why, n, "",
                                   "libfabric offers none that the library knows: look at fi_info "
                                   "and at FI_PROVIDER");
}

/* Whoever names a provider or a device gets that or nothing. */
enum info_state info_check_network(char *why, size_t n)
{
    bool asked;
    int st = info_try_network(why, n, &asked);
    return st == GIN_OK ? INFO_PASS : asked ? INFO_FAIL : INFO_MISSING;
}

enum info_state info_check_rdma(char *why, size_t n)
{
    bool kernel = access("/sys/class/infiniband", F_OK) == 0;
    bool devices = kernel && access("/dev/infiniband", F_OK) == 0;
    if (!GI_HAVE_IBVERBS)
        return info_said(false, why, n, "",
                         "built without rdma-core (libibverbs): gininfo cannot look; verbs works "
                         "all the same where libfabric has it");
    return info_said(devices, why, n, "there are some: gininfo shows their ports",
                     kernel ? "/dev/infiniband is not there: load ib_uverbs, or give it to the "
                              "container"
                            : "the kernel shows none: ranks of other hosts are reached over TCP");
}

/* ---- GPUs ---- */

#define VMM        102 /* attributes of devices, as the driver numbers them */
#define VMM_FD     103
#define DMABUF     124
#define MULTICAST  132
#define CUDA_LEAST 12000

static struct {
    bool tried;
    int version, gpus;
    int (*attribute)(int *value, int which, int device);
    char why[160];
} cuda;

static void *entry(void *lib, const char *name)
{
    return lib != NULL ? dlsym(lib, name) : NULL;
}

/* The driver, asked without a context on any GPU. */
static void look(void)
{
    int (*init)(unsigned) = NULL, (*version)(int *) = NULL, (*count)(int *) = NULL;
    int st;
    if (cuda.tried)
        return;
    cuda.tried = true;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *entries[] = {entry(lib, "cuInit"), entry(lib, "cuDriverGetVersion"),
                       entry(lib, "cuDeviceGetCount"), entry(lib, "cuDeviceGetAttribute")};
    memcpy(&init, &entries[0], sizeof(init));
    memcpy(&version, &entries[1], sizeof(version));
    memcpy(&count, &entries[2], sizeof(count));
    memcpy(&cuda.attribute, &entries[3], sizeof(cuda.attribute));
    if (lib == NULL || init == NULL || version == NULL || count == NULL || cuda.attribute == NULL)
        snprintf(cuda.why, sizeof(cuda.why),
                 "no libcuda.so.1: install NVIDIA's driver, 525 or later");
    else if ((st = version(&cuda.version)) != 0 || (st = init(0)) != 0 ||
             (st = count(&cuda.gpus)) != 0)
        snprintf(cuda.why, sizeof(cuda.why), "the driver is there and answers with error %d", st);
    else if (cuda.gpus == 0)
        snprintf(cuda.why, sizeof(cuda.why), "it sees no GPU: look at CUDA_VISIBLE_DEVICES");
}

enum info_state info_check_driver(char *why, size_t n)
{
    look();
    bool ok = cuda.why[0] == 0 && cuda.version >= CUDA_LEAST;
    snprintf(why, n, "%.159s", cuda.why);
    if (cuda.why[0] == 0)
        snprintf(why, n, "for CUDA %d.%d, at least 12.0; GPUs: %d%s", cuda.version / 1000,
                 cuda.version % 1000 / 10, cuda.gpus, ok ? "" : "; install one of 525 or later");
    return ok ? INFO_PASS : INFO_MISSING;
}

enum info_state info_check_kernels(char *why, size_t n)
{
    return info_said(GI_HAVE_CUDA, why, n, "built with the toolkit",
                     "built without nvcc: GPUs are refused; configure where nvcc of CUDA 12 or 13 "
                     "is found, or --with-cuda");
}

/* Every GPU has the attribute; where not, the reason is in why. */
static bool all_have(int which, char *why, size_t n, const char *what)
{
    look();
    if (cuda.why[0] != 0)
        return snprintf(why, n, "no GPU: %.150s", cuda.why), false;
    for (int d = 0; d < cuda.gpus; d++) {
        int v = 0;
        if (cuda.attribute(&v, which, d) != 0 || v == 0)
            return snprintf(why, n, "GPU %d %s", d, what), false;
    }
    return true;
}

enum info_state info_check_gpu_memory(char *why, size_t n)
{
    if (!all_have(VMM, why, n, "has no virtual memory management: it takes architecture 7.0") ||
        !all_have(VMM_FD, why, n, "does not share memory by descriptors"))
        return INFO_MISSING;
    return info_said(true, why, n, "mapped and shared by descriptors", "");
}

enum info_state info_check_multimem(char *why, size_t n)
{
    if (!all_have(MULTICAST, why, n,
                  "has no multicast: it takes architecture 9.0, NVSwitch and its fabric manager; "
                  "the same results come without"))
        return INFO_MISSING;
    return info_said(true, why, n, "the GPUs have it; whether the switches do only use tells", "");
}

enum info_state info_check_dmabuf(char *why, size_t n)
{
    if (!HAVE_DECL_FI_MR_DMABUF || gi_ofi_version() < (1u << 16 | 20))
        return info_said(
            false, why, n, "",
            "libfabric is older than 1.20, or was when this was built; without it GPU memory goes by "
            "FI_HMEM or is copied through the host");
    if (!info_kernel(5, 12))
        return info_said(false, why, n, "", "the kernel is older than 5.12");
    if (!all_have(DMABUF, why, n,
                  "does not export memory: it takes NVIDIA's open kernel modules, 515 or later"))
        return INFO_MISSING;
    return info_said(
        true, why, n,
        "libfabric, kernel and driver have it; whether the provider does tells a job's "
        "gpu-net",
        "");
}

enum info_state info_check_peermem(char *why, size_t n)
{
    bool there = access("/sys/module/nvidia_peermem", F_OK) == 0;
    return info_said(
        there, why, n, "the module is loaded; for GPU memory by FI_HMEM",
        "the module is not loaded; without it GPU memory goes as DMA-BUF or is copied through the "
        "host");
}

enum info_state info_check_gdrcopy(char *why, size_t n)
{
    char reason[120] = "";
    struct gi_gdr *g = gi_gdr_open("", reason, sizeof(reason));
    bool there = g != NULL;
    gi_gdr_close(g);
    return info_said(there, why, n, "the CPU copies a few bytes of staged GPU memory",
                     reason[0] != 0 ? reason : "not there");
}

/* ---- launchers and tools ---- */

static enum info_state library(bool built, const char *const *names, char *why, size_t n,
                               const char *package)
{
    for (; built && *names != NULL; names++) {
        void *lib = dlopen(*names, RTLD_LAZY | RTLD_LOCAL);
        if (lib != NULL) {
            dlclose(lib);
            snprintf(why, n, "%s opens", *names);
            return INFO_PASS;
        }
    }
    snprintf(why, n, "%s: launchers that offer nothing else are not joined; install %s",
             built ? "its library does not open" : "built without its header", package);
    return INFO_MISSING;
}

enum info_state info_check_pmix(char *why, size_t n)
{
    static const char *const names[] = {"libpmix.so.2", NULL};
    return library(GI_HAVE_PMIX, names, why, n, "PMIx 3 or later");
}

enum info_state info_check_pmi2(char *why, size_t n)
{
    static const char *const names[] = {"libpmi2.so.0", "libpmi2.so", NULL};
    return library(GI_HAVE_PMI2, names, why, n, "Slurm's libpmi2");
}

enum info_state info_check_namespaces(char *why, size_t n)
{
    static const char *const places[] = {"/sbin/ip", "/usr/sbin/ip", "/bin/ip", "/usr/bin/ip"};
    bool ip = false;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        ip = ip || access(places[i], X_OK) == 0;
    return info_said(ip && geteuid() == 0, why, n, "root, and ip (iproute2)",
                     ip ? "\"ginrun --netns\" takes root"
                        : "\"ginrun --netns\" takes root and ip (iproute2)");
}

enum info_state info_check_json(char *why, size_t n)
{
    return info_said(GI_HAVE_JANSSON, why, n, "built with jansson",
                     "built without jansson 2.10 or later: no --json");
}
