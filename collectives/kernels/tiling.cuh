// SPDX-License-Identifier: Apache-2.0
// Which packs of the vector a tile holds, and which of them are whose.
#pragma once

#include <cstdint>

#include "collectives/kernels/call.hpp"
#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

/// A run of packs: `part` for each rank, the ranks' parts one after the other.
struct Tile {
  std::uint64_t begin;
  std::uint64_t end;  // of the vector
  std::uint32_t part;

  __device__ __forceinline__ std::uint64_t place(int owner, std::uint32_t at) const {
    return begin + static_cast<std::uint32_t>(owner) * part + at;
  }
  /// The last tile's parts are shorter, and its last ones may be shorter still.
  __device__ __forceinline__ bool has(int owner, std::uint32_t at) const {
    return at < part && place(owner, at) < end;
  }
};

/// The vector cut into tiles of up to n x `lane` packs. A tile is one run of the vector, so that a
/// kernel walks it once, and a short last tile is shared by all ranks.
class Tiling {
 public:
  __device__ __forceinline__ Tiling(const Call& call, std::uint32_t lane)
      : packs_(packs_of(call.bytes)),
        ranks_(static_cast<std::uint32_t>(call.ranks)),
        lane_(lane),
        width_(std::uint64_t{ranks_} * lane) {}

  __device__ __forceinline__ std::uint32_t lane() const { return lane_; }
  __device__ __forceinline__ std::uint32_t tiles() const {
    return static_cast<std::uint32_t>((packs_ + width_ - 1) / width_);
  }
  __device__ __forceinline__ Tile tile(std::uint32_t index) const {
    const std::uint64_t begin = index * width_;
    const std::uint64_t rest = packs_ - begin;
    if (rest >= width_) return {begin, packs_, lane_};
    return {begin, packs_, (static_cast<std::uint32_t>(rest) + ranks_ - 1) / ranks_};
  }

 private:
  std::uint64_t packs_;
  std::uint32_t ranks_;
  std::uint32_t lane_;
  std::uint64_t width_;
};

}  // namespace gdrx::gpu
