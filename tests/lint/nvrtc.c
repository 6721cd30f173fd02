/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiles one public header, or a file of kernels, under NVRTC, which is opened at run time:
 * nvrtc INCLUDE-DIR HEADER|FILE.cu [OPTION]. The only headers on its path are ours. 0, 77 where
 * there is no NVRTC, else 1 with its log; a warning is an error.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program;
typedef int create_fn(struct program **, const char *src, const char *name, int n,
                      const char *const *headers, const char *const *names);
typedef int compile_fn(struct program *, int n, const char *const *options);
typedef int size_fn(struct program *, size_t *);
typedef int text_fn(struct program *, char *);

static void *open_nvrtc(void)
{
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so.11.2", "/usr/local/cuda/lib64/libnvrtc.so"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *lib = dlopen(names[i], RTLD_NOW);
        if (lib != NULL)
            return lib;
    }
    return NULL;
}

/* The text to compile, NULL if the file cannot be read. */
static char *source_of(const char *what)
{
    const size_t max = 1 << 20;
    char *text = calloc(1, max);
    const char *dot = strrchr(what, '.');
    if (text == NULL)
        return NULL;
    if (dot == NULL || strcmp(dot, ".cu") != 0) {
        snprintf(text, max, "#include <%s>\n", what);
        return text;
    }
    FILE *f = fopen(what, "r");
    size_t n = f != NULL ? fread(text, 1, max - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    if (n != 0)
        return text;
    free(text);
    return NULL;
}

/* What the compiler said; 1 if it said anything. */
static int print_log(size_fn *log_size, text_fn *log_text, struct program *program)
{
    size_t n = 0;
    if (log_size(program, &n) != 0 || n <= 1)
        return 0;
    char *log = calloc(1, n + 1);
    if (log != NULL && log_text(program, log) == 0)
        fputs(log, stderr);
    free(log);
    return 1;
}

int main(int argc, char **argv)
{
    char include[4096];
    struct program *program;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: nvrtc INCLUDE-DIR HEADER|FILE.cu [OPTION]\n");
        return 1;
    }
    void *lib = open_nvrtc();
    if (lib == NULL) {
        printf("no libnvrtc here: not tried\n");
        return 77;
    }
    create_fn *create = (create_fn *)dlsym(lib, "nvrtcCreateProgram");
    compile_fn *compile = (compile_fn *)dlsym(lib, "nvrtcCompileProgram");
    size_fn *log_size = (size_fn *)dlsym(lib, "nvrtcGetProgramLogSize");
    text_fn *log_text = (text_fn *)dlsym(lib, "nvrtcGetProgramLog");
    if (create == NULL || compile == NULL || log_size == NULL || log_text == NULL) {
        fprintf(stderr, "libnvrtc lacks a function\n");
        return 1;
    }
    snprintf(include, sizeof(include), "-I%s", argv[1]);
    char *source = source_of(argv[2]);
    if (source == NULL || create(&program, source, "unit.cu", 0, NULL, NULL) != 0) {
        fprintf(stderr, "%s: cannot be read\n", argv[2]);
        return 1;
    }
    const char *options[] = {include, "--std=c++17", "--gpu-architecture=compute_75", argv[3]};
    int failed = compile(program, argc, options) != 0;
    failed |= print_log(log_size, log_text, program);
    free(source);
    return failed;
}
