// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/arena.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <list>
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

bool is_dead(const PeerProcess& peer, const PeerProcess& self) {
  return self.names != 0 && peer.names == self.names && kill(peer.pid, 0) != 0 && errno == ESRCH;
}

struct DesertedArenas {
  std::mutex mutex;
  std::list<DesertedArena> all;
};

// Never destroyed: the CUDA runtime may be gone before it.
DesertedArenas& deserted_arenas() {
  static DesertedArenas& instance = *new DesertedArenas;
  return instance;
}

/// Of ranks that have gone without their peers' knowing.
struct UntoldDepartures {
  std::mutex mutex;
  std::list<PeerArenas> all;
};

UntoldDepartures& untold_departures() {
  static UntoldDepartures& instance = *new UntoldDepartures;  // as there
  return instance;
}

bool is_left(const DesertedArena& one) {
  std::array<std::uint32_t, kMaxRanks> departed{};
  const auto read = [&](cudaStream_t stream) {
    return cudaMemcpyAsync(departed.data(), one.memory.data() + offsetof(Control, departed),
                           sizeof departed, cudaMemcpyDeviceToHost, stream);
  };
  if (!run_aside(read, "reading which peers have departed")) return false;
  const PeerProcess self = this_process();
  return std::all_of(one.peers.begin(), one.peers.end(), [&](const PeerProcess& peer) {
    return departed[static_cast<std::size_t>(peer.rank)] == one.lease || is_dead(peer, self);
  });
}

/// Gives back to the pool what nobody writes to any more, of the current device.
void release_what_peers_left() {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return;
  DesertedArenas& deserted = deserted_arenas();
  const std::lock_guard lock(deserted.mutex);
  deserted.all.remove_if(
      [&](const DesertedArena& one) { return one.memory.device() == device && is_left(one); });
}

// Owners are none of them 0, which the memory holds at first. One comes again after two billion.
std::uint32_t next_lease() noexcept {
  static std::atomic<std::uint32_t> last{0};
  std::uint32_t lease = ++last;
  while (owner_of(lease) == 0) lease = ++last;
  return lease;
}

}  // namespace

PeerProcess this_process() {
  struct stat names {};
  const bool known = stat("/proc/self/ns/pid", &names) == 0;
  return {getpid(), known ? names.st_ino : 0};
}

void OwnArena::await_departures(std::vector<PeerProcess> peers) noexcept {
  place_.front().peers = std::move(peers);
}

OwnArena::~OwnArena() {
  if (place_.empty() || place_.front().peers.empty()) return;
  place_.front().lease = lease_;
  place_.front().memory = std::move(memory_);
  DesertedArenas& deserted = deserted_arenas();
  const std::lock_guard lock(deserted.mutex);
  deserted.all.splice(deserted.all.end(), place_);
}

Result<std::unique_ptr<OwnArena>> OwnArena::borrow() {
  std::unique_ptr<OwnArena> arena(new OwnArena);
  PeerArenas::depart_late();
  release_what_peers_left();
  arena->place_.emplace_back();
  arena->lease_ = next_lease();
  arena->memory_ = GDRX_TRY(PooledMemory::borrow(kArenaBytes));
  GDRX_TRY(check(cudaIpcGetMemHandle(&arena->handle_, arena->data()), "cudaIpcGetMemHandle"));
  const auto clear = [&](cudaStream_t stream) {
    return clear_arena(arena->data(), owner_of(arena->lease_), stream);
  };
  GDRX_TRY(run_aside(clear, "clearing an arena"));
  return arena;
}

cudaError_t OwnArena::close(cudaStream_t stream) noexcept {
  static constexpr std::uint32_t kNobody = 0;
  return cudaMemcpyAsync(data() + offsetof(Control, owner), &kNobody, sizeof kNobody,
                         cudaMemcpyHostToDevice, stream);
}

Result<std::unique_ptr<PeerArena>> PeerArena::open(const cudaIpcMemHandle_t& handle,
                                                   std::uint32_t lease) {
  std::unique_ptr<PeerArena> arena(new PeerArena);
  arena->lease_ = lease;
  void* data = nullptr;
  GDRX_TRY(check(cudaGetDevice(&arena->device_), "cudaGetDevice"));
  GDRX_TRY(check(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess),
                 "cudaIpcOpenMemHandle"));
  arena->data_ = static_cast<std::uint8_t*>(data);
  arena->mapped_ = true;
  return arena;
}

Result<std::unique_ptr<PeerArena>> PeerArena::reach(std::uint8_t* pointer, std::uint32_t lease) {
  std::unique_ptr<PeerArena> arena(new PeerArena);
  arena->lease_ = lease;
  GDRX_TRY(check(cudaGetDevice(&arena->device_), "cudaGetDevice"));
  cudaPointerAttributes attributes{};
  GDRX_TRY(check(cudaPointerGetAttributes(&attributes, pointer), "cudaPointerGetAttributes"));
  if (attributes.device != arena->device_) {
    GDRX_TRY(enable_peer_access(arena->device_, attributes.device));
  }
  arena->data_ = pointer;
  return arena;
}

bool PeerArenas::tell() const noexcept {
  if (all.empty()) return true;
  const OnDevice here(device);
  const std::size_t at =
      offsetof(Control, departed) + static_cast<std::size_t>(self) * sizeof(std::uint32_t);
  cudaStream_t stream = nullptr;
  cudaError_t status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  for (const auto& peer : all) {
    if (status != cudaSuccess) break;
    status = cudaMemcpyAsync(peer->data_ + at, &peer->lease_, sizeof peer->lease_,
                             cudaMemcpyHostToDevice, stream);
  }
  if (stream != nullptr) {
    const cudaError_t ended = cudaStreamSynchronize(stream);
    if (status == cudaSuccess) status = ended;
    cudaStreamDestroy(stream);
  }
  cudaGetLastError();  // not the user's next call's
  return status == cudaSuccess;
}

void PeerArenas::depart(std::list<PeerArenas> one) noexcept {
  if (one.front().tell()) return;
  UntoldDepartures& untold = untold_departures();
  const std::lock_guard lock(untold.mutex);
  untold.all.splice(untold.all.end(), one);
}

void PeerArenas::depart_late() noexcept {
  UntoldDepartures& untold = untold_departures();
  const std::lock_guard lock(untold.mutex);
  untold.all.remove_if([](const PeerArenas& one) { return one.tell(); });
}

PeerArena::~PeerArena() {
  if (!mapped_) return;
  const OnDevice here(device_);
  cudaIpcCloseMemHandle(data_);
}

}  // namespace gdrx::gpu
