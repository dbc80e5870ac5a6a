// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/arena.hpp"

#include <mutex>
#include <vector>

#include "collectives/gpu/error.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {
namespace {

struct Idle {
  std::uint8_t* data;
  cudaIpcMemHandle_t handle;
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

Result<void> clear(std::uint8_t* data) {
  cudaStream_t stream = nullptr;
  GDRX_TRY(check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"));
  Result<void> done = check(clear_arena(data, stream), "clearing an arena");
  if (done) done = check(cudaStreamSynchronize(stream), "clearing an arena");
  cudaStreamDestroy(stream);
  return done;
}

}  // namespace

Result<std::unique_ptr<OwnArena>> OwnArena::borrow() {
  std::unique_ptr<OwnArena> arena(new OwnArena);
  GDRX_TRY(check(cudaGetDevice(&arena->device_), "cudaGetDevice"));
  {
    const std::lock_guard lock(pool().mutex);
    std::vector<Idle>& idle = pool().idle;
    for (auto it = idle.begin(); it != idle.end(); ++it) {
      if (it->device != arena->device_) continue;
      arena->data_ = it->data;
      arena->handle_ = it->handle;
      idle.erase(it);
      break;
    }
  }
  if (arena->data_ == nullptr) {
    void* data = nullptr;
    GDRX_TRY(check(cudaMalloc(&data, kArenaBytes), "cudaMalloc of 16 MiB"));
    arena->data_ = static_cast<std::uint8_t*>(data);
    GDRX_TRY(check(cudaIpcGetMemHandle(&arena->handle_, data), "cudaIpcGetMemHandle"));
  }
  GDRX_TRY(clear(arena->data_));
  return arena;
}

OwnArena::~OwnArena() {
  if (data_ == nullptr || tainted_) return;
  const std::lock_guard lock(pool().mutex);
  pool().idle.push_back({data_, handle_, device_});
}

Result<std::unique_ptr<PeerArena>> PeerArena::open(const cudaIpcMemHandle_t& handle) {
  std::unique_ptr<PeerArena> arena(new PeerArena);
  void* data = nullptr;
  GDRX_TRY(check(cudaGetDevice(&arena->device_), "cudaGetDevice"));
  GDRX_TRY(check(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess),
                 "cudaIpcOpenMemHandle"));
  arena->data_ = static_cast<std::uint8_t*>(data);
  arena->mapped_ = true;
  return arena;
}

Result<std::unique_ptr<PeerArena>> PeerArena::reach(std::uint8_t* pointer) {
  std::unique_ptr<PeerArena> arena(new PeerArena);
  GDRX_TRY(check(cudaGetDevice(&arena->device_), "cudaGetDevice"));
  cudaPointerAttributes attributes{};
  GDRX_TRY(check(cudaPointerGetAttributes(&attributes, pointer), "cudaPointerGetAttributes"));
  if (attributes.device != arena->device_) {
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(attributes.device, 0);
    if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();
    } else {
      GDRX_TRY(check(enabled, "cudaDeviceEnablePeerAccess"));
    }
  }
  arena->data_ = pointer;
  return arena;
}

PeerArena::~PeerArena() {
  if (!mapped_) return;
  const OnDevice here(device_);
  cudaIpcCloseMemHandle(data_);
}

}  // namespace gdrx::gpu
