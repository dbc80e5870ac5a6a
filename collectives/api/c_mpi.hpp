// SPDX-License-Identifier: Apache-2.0
// What libgdrx.so has for the libraries of ours that know MPI. Not in gdrx.h: no user calls it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gdrx/gdrx.h"

extern "C" {
/// `all_gather` fills `all` (ranks * bytes) with every rank's `mine`.
typedef int (*gdrxAllGatherFunction)(const void* mine, void* all, size_t bytes, void* user);
GDRX_API gdrxResult_t gdrxCommInitAllGather(gdrxComm_t* comm, int nranks, int rank,
                                            gdrxAllGatherFunction all_gather, void* user,
                                            const gdrxConfig_t* config);
/// A blocking call that waits calls it in every round in which it would give its core away;
/// `rounds`: how many have moved nothing. It makes no call of `comm`. No thread of gdrx's calls it.
/// Before the first call.
typedef void (*gdrxWaitFunction)(void* user, uint64_t rounds);
GDRX_API gdrxResult_t gdrxCommOnWait(gdrxComm_t comm, gdrxWaitFunction on_wait, void* user);
}
