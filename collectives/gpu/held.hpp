// SPDX-License-Identifier: Apache-2.0
// What a path's kernels use, and what therefore outlives them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "collectives/gpu/arena.hpp"
#include "collectives/gpu/device_wait.hpp"
#include "collectives/gpu/kernel_report.hpp"
#include "collectives/gpu/pooled_memory.hpp"
#include "collectives/gpu/room_of_gpu.hpp"
#include "collectives/gpu/windows.hpp"
#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

/// Goes with the path, or with the thread that waits for kernels which the path did not wait for.
struct Held final : DeviceWait::Kept {
  explicit Held(int of_device) : device(of_device) { peers.front().device = of_device; }
  /// No kernel of the path runs any more. The peers are told that this rank writes to their arenas
  /// no longer: even where all have left together some may not know it.
  ~Held() override;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  /// What graphs hold of the path does nothing from now on. No kernel of the path runs.
  void close() noexcept;
  /// The same beside kernels that run, which nobody waits for here.
  void close_beside() noexcept;

  /// Of a kernel that is told no Call.
  Guard guard() const noexcept {
    return {reinterpret_cast<const Control*>(own->data()), owner_of(own->lease())};
  }

  /// Any thread, as has_failed(): every wait of the path's kernels ends.
  void fail() noexcept { end_waits(*report); }
  bool has_failed() const noexcept { return report != nullptr && waits_have_ended(*report); }

  int device;
  bool met = false;  // all ranks have connected: from then on a peer's kernels may write to `own`
  bool together = false;  // until all have left: no kernel of any rank runs
  std::unique_ptr<OwnArena> own;
  std::shared_ptr<GpuShare> share;  // of the GPU; null: of a rank alone
  std::list<PeerArenas> peers{1};
  std::vector<PeerProcess> processes;  // of the peers
  Windows windows;
  PooledMemory shared;  // with the host: what the next two are in
  Report* report = nullptr;
  Flags* flags = nullptr;
  std::vector<PooledMemory> staging;  // pinned
  PooledMemory products;              // of the GPU; empty: none were made
  cudaEvent_t order = nullptr;
  cudaEvent_t staged = nullptr;  // behind the last call that the host made, if none was captured
  cudaEvent_t never = nullptr;   // never recorded
  cudaStream_t own_stream = nullptr;
  cudaStream_t watch = nullptr;  // in the first capture that has calls, until that ends
};

}  // namespace gdrx::gpu
