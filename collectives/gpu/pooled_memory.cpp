// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/pooled_memory.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "gdrx/pinned_size.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kPinned = -1;  // in place of a device

struct Idle {
  std::byte* data;
  std::uint64_t bytes;
  int device;
};

struct Pool {
  std::mutex mutex;
  std::vector<Idle> idle;  // with room for all that is lent: to take it back needs no memory
  std::size_t lent = 0;
};

// Never destroyed: the CUDA runtime may be gone before it.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

// Of no memory: there is none. Lent is what the caller then makes.
Idle from_pool(std::uint64_t bytes, int device) {
  const std::lock_guard lock(pool().mutex);
  std::vector<Idle>& idle = pool().idle;
  idle.reserve(idle.size() + pool().lent + 1);
  ++pool().lent;
  const auto found = std::find_if(idle.begin(), idle.end(), [&](const Idle& one) {
    return one.device == device && one.bytes == bytes;
  });
  if (found == idle.end()) return {nullptr, bytes, device};
  const Idle taken = *found;
  idle.erase(found);
  return taken;
}

}  // namespace

Result<PooledMemory> PooledMemory::borrow(std::uint64_t bytes) {
  PooledMemory made;
  GDRX_TRY(check(cudaGetDevice(&made.device_), "cudaGetDevice"));
  made.bytes_ = bytes;
  made.data_ = from_pool(bytes, made.device_).data;
  made.lent_ = true;
  if (made.data_ == nullptr) {
    void* data = nullptr;
    const std::string call = fmt::format("cudaMalloc of {} bytes", bytes);
    GDRX_TRY(check(cudaMalloc(&data, bytes), call.c_str()));
    made.data_ = static_cast<std::byte*>(data);
  }
  return made;
}

Result<PooledMemory> PooledMemory::borrow_pinned(std::uint64_t bytes) {
  PooledMemory made;
  const Idle found = from_pool(pinned_size(bytes), kPinned);
  made.device_ = kPinned;
  made.data_ = found.data;
  made.bytes_ = found.bytes;
  made.lent_ = true;
  if (made.data_ == nullptr) {
    void* data = nullptr;
    GDRX_TRY(check(cudaHostAlloc(&data, found.bytes, cudaHostAllocPortable), "cudaHostAlloc"));
    made.data_ = static_cast<std::byte*>(data);
  }
  return made;
}

PooledMemory::~PooledMemory() {
  if (!lent_) return;
  const std::lock_guard lock(pool().mutex);
  --pool().lent;
  if (data_ != nullptr) pool().idle.push_back({data_, bytes_, device_});
}

void PooledMemory::swap(PooledMemory& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  std::swap(lent_, other.lent_);
}

}  // namespace gdrx::gpu
