// SPDX-License-Identifier: Apache-2.0
// This rank's arena: GPU memory that peers map and write.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "collectives/gpu/pooled_memory.hpp"
#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// A rank of this host, as it says itself: whether it lives is asked where both see the same
/// processes.
struct PeerProcess {
  std::int32_t pid = 0;
  std::uint64_t names = 0;  // of process ids: the inode of its namespace
  int rank = 0;             // of a peer, in the communicator
};
/// This process as its peers know it.
PeerProcess this_process();

/// Of a communicator that failed: a peer may still have a kernel that writes there.
struct DesertedArena {
  PooledMemory memory;
  std::uint32_t lease = 0;
  std::vector<PeerProcess> peers;
};

/// Pooled memory, given back when the object goes, or later.
class OwnArena {
 public:
  /// On the current device: control page zero but for its owner, every slot the sentinel.
  static Result<std::unique_ptr<OwnArena>> borrow();
  std::uint8_t* data() const noexcept { return reinterpret_cast<std::uint8_t*>(memory_.data()); }
  const cudaIpcMemHandle_t& handle() const noexcept { return handle_; }
  /// Of the memory to this owner: what departs from another owner's is not meant.
  std::uint32_t lease() const noexcept { return lease_; }
  /// From then on no kernel of this owner's begins. Enqueues; needs no memory.
  cudaError_t close(cudaStream_t stream) noexcept;
  /// These may still write to it: nobody has it again before each has departed, or is dead.
  void await_departures(std::vector<PeerProcess> peers) noexcept;
  ~OwnArena();
  OwnArena(const OwnArena&) = delete;
  OwnArena& operator=(const OwnArena&) = delete;

 private:
  OwnArena() = default;
  PooledMemory memory_;
  cudaIpcMemHandle_t handle_{};
  std::uint32_t lease_ = 0;
  std::list<DesertedArena> place_;  // one, for this arena: to leave it needs no memory
};

/// A peer's arena, mapped here for as long as the object lives.
class PeerArena {
 public:
  /// Another process's, of a GPU of this host; `lease` as its owner says.
  static Result<std::unique_ptr<PeerArena>> open(const cudaIpcMemHandle_t& handle,
                                                 std::uint32_t lease);
  /// Of this process; on another device when `pointer` is there.
  static Result<std::unique_ptr<PeerArena>> reach(std::uint8_t* pointer, std::uint32_t lease);
  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;
  std::uint8_t* data() const noexcept { return data_; }

 private:
  friend struct PeerArenas;
  PeerArena() = default;
  std::uint8_t* data_ = nullptr;
  std::uint32_t lease_ = 0;
  int device_ = 0;
  bool mapped_ = false;
};

/// Those that a path's kernels write to.
struct PeerArenas {
  int device = 0;  // of the path
  int self = 0;    // its rank
  std::vector<std::unique_ptr<PeerArena>> all;

  /// Of one path, which has no kernel any more that writes to them, and will have none: tells their
  /// owners. Where CUDA refuses that, they stay mapped, and it is tried again for the next arena
  /// that this process borrows. Needs no memory of ours.
  static void depart(std::list<PeerArenas> one) noexcept;

 private:
  bool tell() const noexcept;
  friend class OwnArena;
  static void depart_late() noexcept;  // who could not before
};

}  // namespace gdrx::gpu
