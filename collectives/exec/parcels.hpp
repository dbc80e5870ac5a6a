// SPDX-License-Identifier: Apache-2.0
// An all-to-all-v in one hop of the arena. Each rank knows the lengths of its own parts only, so
// none can tell whether the others' are small: each puts up what it has for all, with their
// lengths, or says that it sends messages instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/exec/arena_seat.hpp"
#include "collectives/exec/exchange.hpp"
#include "collectives/exec/execution.hpp"

namespace gdrx::exec {

/// Bytes of all parts and their lengths. Beyond it messages, which are not copied twice, are as
/// fast.
inline constexpr std::uint64_t kMostInParcel = 16 * 1024;

/// In an arena. The same on every rank.
inline bool goes_by_parcels(Collective collective, int ranks) noexcept {
  return collective == Collective::all_to_all_v && ranks > 1 && ranks <= kMostRanksInOneHop;
}

class Parcels {
 public:
  /// Of an all-to-all-v, whose parts stand in the order of ranks. `base`: the arena's stage.
  Parcels(ArenaSeat& seat, const ExchangeCall& call, std::uint64_t base) noexcept;
  /// This rank has too much for the arena: it sends messages.
  bool by_messages() const noexcept { return room_ == 0; }
  bool given() const noexcept { return given_; }
  /// As in every meeting, nobody has to be asked.
  void give() noexcept;
  bool have_come() noexcept;
  bool ready() noexcept {
    if (!given_) give();
    return have_come();
  }
  /// After that: whether all that this rank gets is there, and as long as it expects.
  bool all_here() noexcept;
  bool has_come(int rank) const noexcept { return seat_.has_come(rank); }
  /// Of a rank that has: whether it makes the same call, and what it has for this one fits.
  Result<void> check(int rank);
  /// Then: whether the rank sends messages.
  bool sends(int rank) const noexcept { return seat_.operands()[at(rank)] == nullptr; }
  /// Copies what is there.
  void end() noexcept;
  std::uint64_t end_stage() const noexcept { return base_ + 1; }
  /// Messages that the arena has taken the place of.
  Counters counters() const noexcept;
  const ExchangeCall& call() const noexcept { return call_; }
  int self() const noexcept { return seat_.self(); }
  int ranks() const noexcept { return seat_.layout().ranks(); }
  int late() const noexcept { return late_; }
  std::vector<Rank> awaited() const;

 private:
  static std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }
  std::uint64_t bytes_from(int rank) const noexcept {
    return call_.parts->receives[at(rank)].range.count * call_.element;
  }
  /// Where that rank's parcel lies; empty: it sends messages.
  std::span<std::byte> place_of(int rank, std::uint32_t where) const noexcept;
  /// Finds what that rank has for this one: its place, or null if it sends messages. Empty: what it
  /// has is not a parcel.
  std::optional<std::uint64_t> open(int rank) noexcept;

  ArenaSeat& seat_;
  ExchangeCall call_;
  std::uint64_t base_;
  std::uint64_t room_;  // bytes of its parcel; 0: by messages
  bool given_ = false;
  int late_ = 0;  // ranks before this one have come
};

}  // namespace gdrx::exec
