// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/pooled_memory.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

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

// Of no memory: there is none. Lent is what the caller then makes. The smallest, of at most so
// many bytes, so that what is held is about what was asked for.
Idle from_pool(std::uint64_t bytes, std::uint64_t most, int device) {
  const std::lock_guard lock(pool().mutex);
  std::vector<Idle>& idle = pool().idle;
  idle.reserve(idle.size() + pool().lent + 1);
  ++pool().lent;
  auto best = idle.end();
  for (auto one = idle.begin(); one != idle.end(); ++one) {
    if (one->device != device || one->bytes < bytes || one->bytes > most) continue;
    if (best == idle.end() || one->bytes < best->bytes) best = one;
  }
  if (best == idle.end()) return {nullptr, bytes, device};
  const Idle found = *best;
  idle.erase(best);
  return found;
}

}  // namespace

Result<PooledMemory> PooledMemory::borrow(std::uint64_t bytes) {
  PooledMemory made;
  GDRX_TRY(check(cudaGetDevice(&made.device_), "cudaGetDevice"));
  made.bytes_ = bytes;
  made.data_ = from_pool(bytes, bytes, made.device_).data;
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
  const Idle found = from_pool(bytes, bytes + bytes / 4, kPinned);
  made.device_ = kPinned;
  made.data_ = found.data;
  made.bytes_ = found.bytes;
  made.lent_ = true;
  if (made.data_ == nullptr) {
    void* data = nullptr;
    GDRX_TRY(check(cudaHostAlloc(&data, bytes, cudaHostAllocPortable), "cudaHostAlloc"));
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
