// SPDX-License-Identifier: Apache-2.0
// How a rail's memory is divided, and a part of the vector into shares. Pure arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gdrx/types.hpp"

namespace gdrx::exec {

/// A rail: one rank of each host, 0 to hosts - 1. Each has an area of the same form:
///
///     slot 0: part | landing of each other host     slot 1: ...     slot 2: ...
///
/// Host h adds up the h-th share of every part. Shares begin at multiples of kUnit; the last ones
/// may be short or empty.
class RailLayout {
 public:
  static constexpr std::uint32_t kSlots = 3;  // parts in flight
  static constexpr Bytes kUnit = 128;         // a cache line of the GPU
  static constexpr Bytes kGpuPage = 64 << 10;

  /// `most`: bytes of a part, at most.
  RailLayout(int hosts, Bytes most) noexcept
      : hosts_(static_cast<Bytes>(hosts)), part_(round_up(most)), share_(share_of(part_)) {}

  int hosts() const noexcept { return static_cast<int>(hosts_); }
  Bytes most() const noexcept { return part_; }
  /// Whole pages of a GPU, which is what NICs are given.
  Bytes bytes() const noexcept {
    return (kSlots * slot_bytes() + kGpuPage - 1) / kGpuPage * kGpuPage;
  }

  /// Where the part lies that this rank brings, and in the end its sum.
  Bytes part(std::uint32_t slot) const noexcept { return slot * slot_bytes(); }
  /// Where the share of `source` lands in the area of `owner`; in the order of hosts, without the
  /// owner.
  Bytes landing(std::uint32_t slot, int owner, int source) const noexcept {
    const int place = source < owner ? source : source - 1;
    return part(slot) + part_ + static_cast<Bytes>(place) * share_;
  }
  Bytes landing_stride() const noexcept { return share_; }

  struct Share {
    Bytes begin = 0;  // in the part
    Bytes bytes = 0;
  };
  Share share(Bytes part, int host) const noexcept {
    const Bytes each = share_of(part);
    const Bytes begin = std::min(part, static_cast<Bytes>(host) * each);
    return {begin, std::min(each, part - begin)};
  }

  /// Messages that the rank of `host` has to send, and as many to receive, for a part.
  std::uint64_t messages(Bytes part, int host) const noexcept {
    std::uint64_t others = 0;  // that have a share
    for (int other = 0; other < hosts(); ++other) {
      if (other != host && share(part, other).bytes > 0) ++others;
    }
    return others + (share(part, host).bytes > 0 ? hosts_ - 1 : 0);
  }

 private:
  static constexpr Bytes round_up(Bytes value) noexcept {
    return (value + kUnit - 1) / kUnit * kUnit;
  }
  Bytes share_of(Bytes part) const noexcept { return round_up((part + hosts_ - 1) / hosts_); }
  Bytes slot_bytes() const noexcept { return part_ + (hosts_ - 1) * share_; }

  Bytes hosts_;
  Bytes part_;
  Bytes share_;
};

}  // namespace gdrx::exec
