// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/arena.hpp"

#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/kernels/launch.hpp"

namespace gdrx::gpu {
namespace {

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

}  // namespace

Result<std::unique_ptr<OwnArena>> OwnArena::borrow() {
  std::unique_ptr<OwnArena> arena(new OwnArena);
  arena->memory_ = GDRX_TRY(PooledMemory::borrow(kArenaBytes));
  GDRX_TRY(check(cudaIpcGetMemHandle(&arena->handle_, arena->data()), "cudaIpcGetMemHandle"));
  GDRX_TRY(run_aside([&](cudaStream_t stream) { return clear_arena(arena->data(), stream); },
                     "clearing an arena"));
  return arena;
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
