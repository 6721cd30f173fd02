/* SPDX-License-Identifier: BSD-3-Clause */
/* The library itself and what it stands on: build, libfabric's providers, CUDA's driver. */
#include <dlfcn.h>
#include <hwloc.h>
#include <string.h>
#include <ginshmem.h>
#include "base/env.h"
#include "boot/boot_impl.h"
#include "cuda/gdr.h"
#include "lib/tools/gininfo.h"
#include "transport/ofi/ofi_info.h"

static void built_with(const char *what, int have, const char *why_not)
{
    info_add("library", what, have ? INFO_YES : INFO_NO, NULL, "%s", have ? "" : why_not);
}

static void providers(void)
{
    struct gi_ofi_found found[16];
    uint32_t v = gi_ofi_version(), b = gi_ofi_built_version();
    char text[32];
    snprintf(text, sizeof(text), "%u.%u", v >> 16, v & 0xffff);
    info_add("libfabric", "version", INFO_PLAIN, text, "built with %u.%u", b >> 16, b & 0xffff);
    size_t n = gi_ofi_probe(found, sizeof(found) / sizeof(found[0]));
    for (size_t i = 0; i < n; i++)
        info_add("libfabric", found[i].provider, found[i].have ? INFO_YES : INFO_NO, NULL, "%s",
                 found[i].text);
}

static void cuda_driver(void)
{
    static const char name[] = "libcuda.so.1";
    void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib == NULL) {
        info_add("library", "CUDA driver", INFO_NO, NULL, "%s", dlerror());
        return;
    }
    int (*version)(int *) = NULL;
    void *symbol = dlsym(lib, "cuDriverGetVersion");
    int v = 0;
    memcpy(&version, &symbol, sizeof(version));
    if (version != NULL && version(&v) == 0)
        info_add("library", "CUDA driver", INFO_YES, NULL, "%s, for CUDA %d.%d", name, v / 1000,
                 v % 1000 / 10);
    else
        info_add("library", "CUDA driver", INFO_NO, NULL, "%s is there but tells no version", name);
    dlclose(lib);
}

static void gdrcopy(void)
{
    char why[120] = "";
    struct gi_gdr *g = gi_gdr_open("", why, sizeof(why));
    info_add("library", "GDRCopy", g != NULL ? INFO_YES : INFO_NO, NULL, "%s", why);
    gi_gdr_close(g);
}

void info_library(void)
{
    char text[32];
    unsigned hw = hwloc_get_api_version();
    snprintf(text, sizeof(text), "%d.%d.%d", GIN_VERSION_MAJOR, GIN_VERSION_MINOR,
             GIN_VERSION_PATCH);
    info_add("library", "version", INFO_PLAIN, text, "device communicators ABI %d",
             GIN_DEVCOMM_ABI);
    info_add("library", "compiler", INFO_PLAIN, __VERSION__, "%s", "");
    snprintf(text, sizeof(text), "%u.%u", hw >> 16, hw >> 8 & 0xff);
    info_add("library", "hwloc API", INFO_PLAIN, text, "%s", "");
    built_with("PMIx", GI_HAVE_PMIX, "configured without pmix.h");
    built_with("PMI-2", GI_HAVE_PMI2, "configured without slurm/pmi2.h");
    built_with("PMI-1", 1, "");
    built_with("ibverbs", GI_HAVE_IBVERBS, "configured without libibverbs");
    built_with("CUDA", GI_HAVE_CUDA, "configured without nvcc");
    built_with("jansson", GI_HAVE_JANSSON, "configured without it; --json is not to be had");
    cuda_driver();
    gdrcopy();
    providers();
}

/* ---- what started this process ---- */

/* One way of joining; the first offered one is what gin_init() takes. */
static void way(const char *name, bool offered, const char *why, const char **join)
{
    info_add("launcher", name, offered ? INFO_YES : INFO_NO, NULL, "%s", why);
    if (*join == NULL && offered)
        *join = name;
}

/* In the order in which gin_init() asks. */
void info_launchers(void)
{
    struct gi_env env;
    const char *why, *join = NULL, *from;
    int rank, size;
    bool offered;
    if (gi_env_load(&env) != GIN_OK) {
        info_add("launcher", "variables", INFO_NO, NULL, "%s", gin_last_error());
        return;
    }
    offered = gi_boot_root_offered(&env, &why);
    way("tcp", offered, why, &join);
    offered = gi_boot_pmix_offered(&why);
    way("pmix", offered, why, &join);
    offered = gi_boot_pmi1_offered(&why);
    way("pmi1", offered, why, &join);
    offered = gi_boot_pmi2_offered(&why);
    way("pmi2", offered, why, &join);
    offered = gi_boot_torch_offered(&why);
    way("torchrun", offered, why, &join);
    if (strcmp(env.boot, "auto") != 0)
        info_add("launcher", "joins by", INFO_PLAIN, env.boot, "GINSHMEM_BOOT");
    else
        info_add("launcher", "joins by", INFO_PLAIN, join != NULL ? join : "self", "%s",
                 join != NULL ? "the first that is offered" : "no launcher: a job of one rank");
    if (gi_boot_env_rank(&env, &rank, &size, &from))
        info_add("launcher", "rank", INFO_PLAIN, NULL, "%d of %d, says %s", rank, size, from);
    gi_env_release(&env);
}

void info_variables(void)
{
    const struct gi_env_row *rows;
    size_t n = gi_env_rows(&rows);
    for (size_t i = 0; i < n; i++) {
        const char *value = gi_env_foreign(rows[i].name);
        const char *origin = value != NULL ? "environment" : "default";
        if (value != NULL && strcmp(rows[i].name, GI_ENV_PREFIX "SECRET") == 0)
            value = "(not shown)";
        if (value == NULL)
            value = rows[i].def;
        struct info_fact *f =
            info_add("variables", rows[i].name, INFO_PLAIN, value, "%s", rows[i].help);
        f->origin = origin;
        f->def = strdup(rows[i].def);
    }
}
