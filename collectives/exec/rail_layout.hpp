// SPDX-License-Identifier: Apache-2.0
// How a rail's memory is divided. Pure arithmetic.
#pragma once

#include <cstdint>

#include "gdrx/types.hpp"

namespace gdrx::exec {

/// The area of each rank, the same for every plan:
///
///     slot 0: part | what lands beside it     slot 1: ...     slot 2: ...
class RailLayout {
 public:
  static constexpr std::uint32_t kSlots = 3;  // parts in flight
  static constexpr Bytes kUnit = 128;         // a cache line of the GPU
  static constexpr Bytes kGpuPage = 64 << 10;
  static constexpr Bytes round_up(Bytes value, Bytes unit = kUnit) noexcept {
    return (value + unit - 1) / unit * unit;
  }

  /// Bytes of a part, and of what lands beside it, at most.
  constexpr RailLayout(Bytes part, Bytes landing) noexcept
      : part_(round_up(part)), landing_(round_up(landing)) {}

  constexpr Bytes part_room() const noexcept { return part_; }
  constexpr Bytes landing_room() const noexcept { return landing_; }
  /// Whole pages of a GPU, which is what NICs are given.
  constexpr Bytes bytes() const noexcept { return round_up(kSlots * (part_ + landing_), kGpuPage); }

  /// Where the part lies that this rank brings, and in the end its sum.
  constexpr Bytes part(std::uint32_t slot) const noexcept { return slot * (part_ + landing_); }
  constexpr Bytes landing(std::uint32_t slot) const noexcept { return part(slot) + part_; }

 private:
  Bytes part_;
  Bytes landing_;
};

}  // namespace gdrx::exec
