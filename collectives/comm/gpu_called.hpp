// SPDX-License-Identifier: Apache-2.0
// What a GPU was called to do, as people read it; and whom its kernels wait for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "collectives/comm/waiting.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx {

/// "allReduce of 100 float, sum, one-shot", "broadcast of float, root 0", "messages". `ranks`: that
/// the GPUs' part of the call has.
std::string text_of(const gpu::Called& called, int ranks);

/// Which of a path's kernels wait now. They say that they wait, and not when they no longer do: who
/// says nothing more has what it waited for.
class GpuWaits {
 public:
  /// Any thread. Adds to `all`; `rank_of`: of the path's ranks. Takes some milliseconds if there is
  /// news.
  void look(const gpu::Path& path, int ranks, const std::function<Rank(Rank)>& rank_of,
            Waiting& all);

 private:
  std::mutex mutex_;
  std::array<std::uint32_t, gpu::kMaxRanks> told_{};  // what is no news
};

}  // namespace gdrx
