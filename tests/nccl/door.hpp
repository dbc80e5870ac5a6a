// SPDX-License-Identifier: Apache-2.0
// A door in front of gdrx's functions, as libgdrx-nccl.so calls them: a thread can be kept in one
// for as long as a test needs, and communicators are counted as they end. And one in front of
// threads.
#pragma once

#include "gdrx/gdrx.h"

namespace gdrx::nccl::door {

/// Whoever calls a function of gdrx with a door waits in it, until leave_open().
void close();
void leave_open();
/// Returns when a thread is in there.
void await_a_guest();
/// gdrxCommDestroy's calls so far.
int destroyed();
/// How many others the calling thread can still start; negative: any.
void allow_threads(int most);

}  // namespace gdrx::nccl::door
