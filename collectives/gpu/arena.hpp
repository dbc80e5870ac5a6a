// SPDX-License-Identifier: Apache-2.0
// This rank's arena: GPU memory that peers map and write.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "collectives/gpu/pooled_memory.hpp"
#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// Pooled memory, given back when the object goes, unless it was tainted.
class OwnArena {
 public:
  /// On the current device: control page zero, every slot the sentinel.
  static Result<std::unique_ptr<OwnArena>> borrow();
  std::uint8_t* data() const noexcept { return reinterpret_cast<std::uint8_t*>(memory_.data()); }
  const cudaIpcMemHandle_t& handle() const noexcept { return handle_; }
  /// A peer may still write to it: nobody may have it again.
  void taint() noexcept { memory_.keep(); }

 private:
  OwnArena() = default;
  PooledMemory memory_;
  cudaIpcMemHandle_t handle_{};
};

/// A peer's arena, mapped here for as long as the object lives.
class PeerArena {
 public:
  /// Another process's, of a GPU of this host.
  static Result<std::unique_ptr<PeerArena>> open(const cudaIpcMemHandle_t& handle);
  /// Of this process; on another device when `pointer` is there.
  static Result<std::unique_ptr<PeerArena>> reach(std::uint8_t* pointer);
  ~PeerArena();
  PeerArena(const PeerArena&) = delete;
  PeerArena& operator=(const PeerArena&) = delete;
  std::uint8_t* data() const noexcept { return data_; }

 private:
  PeerArena() = default;
  std::uint8_t* data_ = nullptr;
  int device_ = 0;
  bool mapped_ = false;
};

}  // namespace gdrx::gpu
