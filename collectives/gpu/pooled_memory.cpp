// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/rail_memory.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "collectives/gpu/error.hpp"

namespace gdrx::gpu {
namespace {

struct Idle {
  std::byte* data;
  std::uint64_t bytes;
  int device;
};

struct Pool {
  std::mutex mutex;
  std::vector<Idle> idle;
};

// Never destroyed: the CUDA runtime may be gone before it.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

std::byte* from_pool(std::uint64_t bytes, int device) {
  const std::lock_guard lock(pool().mutex);
  std::vector<Idle>& idle = pool().idle;
  const auto found = std::find_if(idle.begin(), idle.end(), [&](const Idle& one) {
    return one.device == device && one.bytes == bytes;
  });
  if (found == idle.end()) return nullptr;
  std::byte* data = found->data;
  idle.erase(found);
  return data;
}

Result<void> clear(std::byte* data, std::uint64_t bytes) {
  cudaStream_t stream = nullptr;
  GDRX_TRY(check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"));
  Result<void> done = check(cudaMemsetAsync(data, 0, bytes, stream), "clearing a rail's memory");
  if (done) done = check(cudaStreamSynchronize(stream), "clearing a rail's memory");
  cudaStreamDestroy(stream);
  return done;
}

}  // namespace

Result<std::unique_ptr<RailMemory>> RailMemory::borrow(std::uint64_t bytes) {
  std::unique_ptr<RailMemory> made(new RailMemory);
  GDRX_TRY(check(cudaGetDevice(&made->device_), "cudaGetDevice"));
  made->data_ = from_pool(bytes, made->device_);
  if (made->data_ == nullptr) {
    void* data = nullptr;
    GDRX_TRY(check(cudaMalloc(&data, bytes), "cudaMalloc of a rail's memory"));
    made->data_ = static_cast<std::byte*>(data);
  }
  made->bytes_ = bytes;
  GDRX_TRY(clear(made->data_, bytes));
  return made;
}

RailMemory::~RailMemory() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(pool().mutex);
  pool().idle.push_back({data_, bytes_, device_});
}

}  // namespace gdrx::gpu
