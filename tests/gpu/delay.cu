// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/delay.hpp"

#include "collectives/kernels/enqueue.cuh"

namespace gdrx::gpu {
namespace {

__device__ void wait(std::uint64_t ns) {
  for (const std::uint64_t begin = nanoseconds(); nanoseconds() - begin < ns;) {
  }
}

__device__ std::uint32_t mix(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return static_cast<std::uint32_t>(x >> 32);
}

__device__ std::uint32_t input(std::uint64_t iteration, int rank, std::uint32_t word) {
  return mix(iteration * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(rank) * 7919 +
             (static_cast<std::uint64_t>(word) << 40));
}

__global__ void delay(std::uint64_t ns) { wait(ns); }

__global__ void fill(std::uint32_t* to, std::uint32_t words, int rank, std::uint32_t delay_ns,
                     const StressState* state) {
  const std::uint64_t iteration = state->iteration;
  const std::uint32_t dice = mix(iteration * 31 + static_cast<std::uint64_t>(rank) + 1);
  if (delay_ns > 0 && dice % 8 == 0) wait(dice / 8 % delay_ns);
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
       i += gridDim.x * blockDim.x) {
    to[i] = input(iteration, rank, i);
  }
}

__global__ void verify(std::uint32_t* result, std::uint32_t words, int ranks, StressState* state) {
  const std::uint64_t iteration = state->iteration;
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
       i += gridDim.x * blockDim.x) {
    std::uint32_t sum = 0;
    for (int r = 0; r < ranks; ++r) sum += input(iteration, r, i);
    if (result[i] != sum) {
      atomicAdd(reinterpret_cast<unsigned long long*>(&state->wrong), 1ULL);
      state->first_wrong = state->first_wrong == 0 ? iteration + 1 : state->first_wrong;
    }
    result[i] = 0xdeadbeef;
  }
  if (gridDim.x > 1) return;
  __syncthreads();
  if (threadIdx.x == 0) state->iteration = iteration + 1;
}

__global__ void next_iteration(StressState* state) { ++state->iteration; }

int blocks_of(std::uint32_t words) { return words > 100000 ? 64 : 1; }

}  // namespace

void load_delays() {
#ifndef GDRX_DEVICE_HEADER
  cudaFuncAttributes asked{};
  cudaFuncGetAttributes(&asked, delay);
  cudaFuncGetAttributes(&asked, fill);
  cudaFuncGetAttributes(&asked, verify);
  cudaFuncGetAttributes(&asked, next_iteration);
#endif
}

void enqueue_delay(std::uint64_t ns, cudaStream_t stream) {
  enqueue_alone(delay, 1, 1, stream, ns);
}

void enqueue_fill(std::uint32_t* to, std::uint32_t words, int rank, std::uint32_t delay_ns,
                  const StressState* state, cudaStream_t stream) {
  enqueue_alone(fill, blocks_of(words), 256, stream, to, words, rank, delay_ns, state);
}

void enqueue_check(std::uint32_t* result, std::uint32_t words, int ranks, StressState* state,
                   cudaStream_t stream) {
  enqueue_alone(verify, blocks_of(words), 256, stream, result, words, ranks, state);
  if (blocks_of(words) > 1) enqueue_alone(next_iteration, 1, 1, stream, state);
}

}  // namespace gdrx::gpu
