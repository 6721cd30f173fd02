/* SPDX-License-Identifier: BSD-3-Clause */
/* GINSHMEM: one-sided communication with GIN semantics. This header brings in all of it. */
#ifndef GINSHMEM_H
#define GINSHMEM_H

#include <ginshmem/status.h>
#include <ginshmem/init.h>
#include <ginshmem/memory.h>
#include <ginshmem/window.h>
#include <ginshmem/team.h>
#include <ginshmem/devcomm.h>
#include <ginshmem/gin.h>
#include <ginshmem/signal.h>
#include <ginshmem/amo.h>
#include <ginshmem/barrier.h>
#include <ginshmem/collective.h>
#include <ginshmem/lsa.h>
#include <ginshmem/stream.h>
#include <ginshmem/info.h>

#endif
