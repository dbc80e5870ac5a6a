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
///
/// A block that waits keeps its multiprocessor as it is set up, and another program's kernel may
/// want more shared memory than that leaves (seen on an H100: ranks that share it, each with a
/// kernel that runs and one behind it, and the GPU had no room for the gradients of the rank that
/// they waited for). So what all ranks but one have there never covers every multiprocessor.
class EarlyStarts {
 public:
  /// `sharing`: ranks of the communicator on this GPU. Three communicators have room.
  /// `processors`: multiprocessors of the GPU.
  explicit EarlyStarts(int sharing = 1, int processors = 132) noexcept
      : longest_(std::max(2, kGrids / std::max(1, sharing))),
        room_(sharing < 2 ? kNoBound : (processors - 1) / (sharing - 1)),
        run_(longest_) {}

  /// Whether the next kernel of the stream may start early; the first does not.
  bool next(const Shape& shape) noexcept {
    const bool room = there_ + shape.blocks <= room_;
    if (!is_tiny(static_cast<std::uint32_t>(shape.blocks * shape.threads))) {
      there_ = shape.blocks;  // it lets the next in when it is the first itself
      return room;
    }
    const bool early = room && run_ < longest_;
    run_ = early ? run_ + 1 : 1;
    there_ = early ? there_ + shape.blocks : shape.blocks;
    return early;
  }

 private:
  static constexpr int kGrids = 40;
  static constexpr int kNoBound = 1 << 20;
  int longest_;
  int room_;       // blocks of one rank
  int run_;        // tiny kernels that may be on the GPU at once, up to the last one
  int there_ = 0;  // blocks of all that may be there when the next starts early
};

}  // namespace gdrx::gpu
