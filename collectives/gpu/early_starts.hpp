// SPDX-License-Identifier: Apache-2.0
// How many kernels of a stream may be on the GPU at once, waiting for the one ahead of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

/// A GPU runs 128 grids at once. Tiny kernels let each other in along the whole stream, and the
/// first of them may wait for a rank that shares the GPU and finds no room there: of one stream
/// after another, so many in a row start early, and the next waits for the end of them all.
class EarlyStarts {
 public:
  /// `sharing`: ranks of the communicator on this GPU. Three communicators have room.
  explicit EarlyStarts(int sharing = 1) noexcept
      : longest_(std::max(2, kGrids / std::max(1, sharing))), run_(longest_) {}

  /// Whether the next kernel of the stream may start early; the first does not.
  bool next(const Shape& shape) noexcept {
    if (!is_tiny(static_cast<std::uint32_t>(shape.blocks * shape.threads))) return true;
    run_ = run_ < longest_ ? run_ + 1 : 1;
    return run_ != 1;
  }

 private:
  static constexpr int kGrids = 40;
  int longest_;
  int run_;  // kernels that may be on the GPU at once, up to the last one
};

}  // namespace gdrx::gpu
