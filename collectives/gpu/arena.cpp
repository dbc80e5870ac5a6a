// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/arena.hpp"

#include <mutex>
#include <set>
#include <utility>
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

// CUDA refuses a second time, and tools report a refused call as an error.
Result<void> enable_peer_access(int from, int to) {
  static std::mutex mutex;
  static std::set<std::pair<int, int>> enabled;
  const std::lock_guard lock(mutex);
  if (enabled.contains({from, to})) return {};
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // by somebody else in this process
  } else {
    GDRX_TRY(check(status, "cudaDeviceEnablePeerAccess"));
  }
  enabled.insert({from, to});
  return {};
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
    GDRX_TRY(enable_peer_access(arena->device_, attributes.device));
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
