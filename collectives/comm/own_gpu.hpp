// SPDX-License-Identifier: Apache-2.0
// This rank's GPU, as its communicator has it: how it reaches the others of its host, and what goes
// on from there.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "collectives/comm/gpu_called.hpp"
#include "collectives/comm/gpu_flags.hpp"
#include "collectives/comm/gpu_spans.hpp"
#include "collectives/comm/open_windows.hpp"
#include "collectives/comm/rails.hpp"
#include "collectives/comm/why_staged.hpp"
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

class OwnGpu {
 public:
  std::unique_ptr<gpu::Path> path;  // null: calls go without one
  std::unique_ptr<GpuSpans> spans;  // null: no trace file
  std::string why_not;              // path is null
  bool own_queue = false;           // path's stream stands for the default one
  gpu::Host host;                   // of this rank
  std::string measured_by;          // the times by which kernels are chosen
  std::optional<GpuFlags> flags;    // with path
  Rails rails;                      // of several hosts
  OpenWindows windows;              // of one host
  GpuWaits waits;                   // of path's kernels
  mutable std::mutex mutex;         // of launches and of windows

  /// Without it, as nobody has any.
  void give_up(std::string why) {
    why_not = std::move(why);
    path.reset();
  }
  /// By who drives. Once a reason.
  bool is_new(WhyStaged why) noexcept {
    const std::uint32_t bit = 1U << static_cast<unsigned>(why);
    return (std::exchange(said_, said_ | bit) & bit) == 0;
  }
  /// Not while a launch is under way: it may hold locks of CUDA's, and wait for this thread.
  void look_at_spans() noexcept {
    if (!spans) return;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (lock.owns_lock()) spans->look();
  }

 private:
  std::uint32_t said_ = 0;  // reasons that the log has, a bit each
};

}  // namespace gdrx
