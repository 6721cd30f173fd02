/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GDRCopy (libgdrapi), where it is installed: GPU memory mapped for the CPU, so that a few bytes
 * are copied in less time than the GPU needs to begin. Nothing depends on it: whoever finds memory
 * not mapped copies otherwise.
 */
#ifndef GI_CUDA_GDR_H
#define GI_CUDA_GDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gi_gdr;

/* path: of the library, "" for the default. NULL: why says what is missing. */
struct gi_gdr *gi_gdr_open(const char *path, char *why, size_t n);
void gi_gdr_close(struct gi_gdr *g); /* nothing is copied any more; NULL is fine */
/* Map GPU memory, as far as there is room. Serial; others may copy meanwhile. False: not mapped. */
bool gi_gdr_map(struct gi_gdr *g, uint64_t addr, uint64_t bytes);
/* As it was mapped; what is copied by it, memory beside it too, has its end first. */
void gi_gdr_unmap(struct gi_gdr *g, uint64_t addr, uint64_t bytes);
/* Copies that are done when they return. False: not all of it is mapped, nothing was copied. */
bool gi_gdr_write(struct gi_gdr *g, uint64_t to, const void *from, uint64_t bytes);
bool gi_gdr_read(struct gi_gdr *g, void *to, uint64_t from, uint64_t bytes);

#endif
