// SPDX-License-Identifier: Apache-2.0
// Kernels of `gdrx perf --p2p` as PTX text, which the driver compiles for the GPU at hand: gdrx
// needs no CUDA toolkit to be built with them.
#pragma once

namespace gdrx::perf {

/// Entries:
/// gdrx_store(u64 to, u64 vectors, u32 value): stores 16-byte vectors of `value`.
/// gdrx_load(u64 from, u64 vectors, u64 sink): loads them; the sink is written to never, in effect.
/// gdrx_ping(u64 mine, u64 theirs, u32 rounds, u32 first, u64 verdict): one thread; flags there and
/// back; *verdict becomes the rounds done. Gives up after 2 s without an answer.
extern const char* const kP2pKernels;

}  // namespace gdrx::perf
