// SPDX-License-Identifier: Apache-2.0
// An all-to-all-v, gatherv or scatterv in one hop of the arena. Each rank knows the lengths of its
// own parts only, so none can tell whether the others' are small: whoever has something for others
// puts it up with its lengths, or says that it sends messages instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/exec/arena_seat.hpp"
#include "collectives/exec/exchange.hpp"
#include "collectives/exec/execution.hpp"
#include "gdrx/plan.hpp"

namespace gdrx::exec {

/// Bytes of all parts and their lengths. Beyond it messages, which are not copied twice, are as
/// fast.
inline constexpr std::uint64_t kMostInParcel = 16 * 1024;

/// In an arena. The same on every rank.
inline bool goes_by_parcels(Collective collective, int ranks) noexcept {
  const bool known = collective == Collective::all_to_all_v || collective == Collective::gather_v ||
                     collective == Collective::scatter_v;
  return known && ranks > 1 && ranks <= kMostRanksInOneHop;
}

class Parcels {
 public:
  /// Parts stand in the order of ranks, or are the root's alone. `base`: the arena's stage.
  Parcels(ArenaSeat& seat, const ExchangeCall& call, std::uint64_t base) noexcept;
  /// This rank has too much for the arena: it sends messages.
  bool by_messages() const noexcept { return gives_ && room_ == 0; }
  /// Or it has nothing to give.
  bool given() const noexcept { return given_; }
  /// Whether nobody reads any more what give() writes over: of a meeting, always.
  bool may_give() noexcept { return seat_.may_post() && (!on_shelf() || seat_.may_fill()); }
  void give() noexcept;
  bool have_come() noexcept;
  bool ready() noexcept {
    if (!given_) {
      if (!may_give()) return false;
      give();
    }
    return have_come();
  }
  /// After that: whether all that this rank gets is there, and as long as it expects.
  bool all_here() noexcept;
  bool has_come(int rank) const noexcept { return seat_.has_come(rank); }
  /// Whether that other rank has something for this one.
  bool takes_from(int rank) const noexcept {
    return rank != self() && (taker_ == ArenaSeat::kAll || taker_ == self()) &&
           (giver_ == ArenaSeat::kAll || giver_ == rank);
  }
  const Part& part_from(int rank) const noexcept { return of(call_.parts->receives, rank); }
  /// Of a rank that has: whether it makes the same call, and what it has for this one fits.
  Result<void> check(int rank);
  /// Then: whether the rank sends messages.
  bool sends(int rank) const noexcept { return seat_.operands()[at(rank)] == nullptr; }
  /// Copies what is there.
  void end() noexcept;
  std::uint64_t end_stage() const noexcept { return base_ + (seat_.rooted() ? 0 : 1); }
  /// Messages that the arena has taken the place of.
  plan::Traffic traffic() const noexcept;
  Counters counters() const noexcept {
    const plan::Traffic all = traffic();
    return {1, all.sends, all.receives};
  }
  const ExchangeCall& call() const noexcept { return call_; }
  int self() const noexcept { return seat_.self(); }
  int ranks() const noexcept { return seat_.layout().ranks(); }
  int late() const noexcept { return late_; }
  std::vector<Rank> awaited() const;

 private:
  static std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }
  static const Part& of(const std::vector<Part>& parts, int rank) noexcept {
    return parts[parts.size() == 1 ? 0 : at(rank)];
  }
  bool on_shelf() const noexcept;
  bool takes() const noexcept { return taker_ == ArenaSeat::kAll || taker_ == self(); }
  /// Lengths in front of a parcel.
  std::size_t lengths() const noexcept { return taker_ == ArenaSeat::kAll ? at(ranks()) : 1; }
  void keep_own() noexcept;
  /// Where that rank's parcel lies; empty: it sends messages.
  std::span<std::byte> place_of(int rank, std::uint32_t where) const noexcept;
  /// Finds what that rank has for this one: its place, or null if it sends messages. Empty: what it
  /// has is not a parcel.
  std::optional<std::uint64_t> open(int rank) noexcept;

  ArenaSeat& seat_;
  ExchangeCall call_;
  std::uint64_t base_;
  int giver_ = ArenaSeat::kAll;
  int taker_ = ArenaSeat::kAll;
  bool gives_;
  std::uint64_t room_ = 0;  // bytes of its parcel; 0: by messages
  bool given_;
  int late_ = 0;  // ranks before this one have come
};

}  // namespace gdrx::exec
