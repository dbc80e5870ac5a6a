// SPDX-License-Identifier: Apache-2.0
// Small kernels for tests.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gdrx::gpu {

/// What a stress run keeps on each GPU.
struct StressState {
  std::uint64_t iteration;
  std::uint64_t wrong;
  std::uint64_t first_wrong;  // iteration + 1
};

/// CUDA may load a kernel when it is first used, and wait then for those that run. Where ranks of
/// one process wait for each other it must not: for these kernels, on the current GPU.
void load_delays();

/// Keeps a GPU busy for about `ns`.
void enqueue_delay(std::uint64_t ns, cudaStream_t stream);
/// Fills `words` 32-bit words with what rank `rank` gives in the state's iteration, after a random
/// delay of up to `delay_ns` in one of eight iterations.
void enqueue_fill(std::uint32_t* to, std::uint32_t words, int rank, std::uint32_t delay_ns,
                  const StressState* state, cudaStream_t stream);
/// Counts words that are not the wrapping sum over all ranks, poisons them, and steps the
/// iteration.
void enqueue_check(std::uint32_t* result, std::uint32_t words, int ranks, StressState* state,
                   cudaStream_t stream);

}  // namespace gdrx::gpu
