// SPDX-License-Identifier: Apache-2.0
// In which order a call between hosts goes into its stream. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gdrx {

/// Pieces in flight, and so slots of the memory between GPUs and network: piece p has p % kAhead.
inline constexpr std::uint64_t kAhead = 3;

/// Piece by piece the GPUs scatter, add as often as the rail's plan says, gather. The stream does
/// one thing after the other, so pieces take turns: a piece begins every so many steps that kAhead
/// of them are under way. A sum stands in its plan's level, which is the same step on every rank
/// that has one there. So each item needs, of any rank, only what stands before it in this order,
/// and all come to an end, whatever the order in which messages arrive.
class StreamOrder {
 public:
  enum class Kind : std::uint8_t { scatter, add, gather };
  struct Item {
    Kind kind = Kind::scatter;
    std::uint64_t piece = 0;
    std::uint32_t sum = 0;  // add: which
  };

  /// `levels`: of any rank's sums; `sums`: the levels of this rank's, from 1 on, in order.
  StreamOrder(std::uint64_t pieces, std::uint32_t levels, std::vector<std::uint32_t> sums);
  /// Empty: that was all. Allocates in the first calls only.
  std::optional<Item> next();

 private:
  void begin_step();

  std::uint64_t pieces_;
  std::uint32_t levels_;
  std::vector<std::uint32_t> sums_;
  std::uint64_t stride_;  // steps from piece to piece
  std::uint64_t step_ = 0;
  std::vector<Item> items_;  // of the step before step_
  std::size_t taken_ = 0;    // of them
};

}  // namespace gdrx
