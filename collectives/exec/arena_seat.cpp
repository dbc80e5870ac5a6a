// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/arena_seat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>

#include "gdrx/traits.hpp"

namespace gdrx::exec {

ArenaSeat::ArenaSeat(const ArenaLayout& layout, int self)
    : layout_(layout),
      self_(self),
      shelves_(layout.shelves()),
      operands_(static_cast<std::size_t>(layout.ranks())) {}

void ArenaSeat::begin(const CallSignature& signature) noexcept {
  begin(signature, plan::traits_of(signature.collective).rooted);
}

std::vector<Rank> ArenaSeat::late_readers() const {
  if (late_ == kAll) return {};
  return {Rank{late_}};
}

bool ArenaSeat::is_read(const Use& use) noexcept {
  // acquire: pairs with the release in end() and the fence before begin()'s store, so that it is
  // written over after that
  const auto passed = [&](int rank) {
    return layout_.line(rank).passed.load(std::memory_order_acquire);
  };
  if (use.reader != kAll) {
    late_ = use.reader;
    return passed(use.reader) >= use.until;
  }
  if (late_ != kAll && passed(late_) < use.until) return false;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank == self_) continue;
    const std::uint64_t theirs = passed(rank);
    if (theirs >= least) continue;
    least = theirs;
    late_ = rank;
  }
  floor_ = std::max(floor_, least);
  return use.until <= floor_;
}

Result<void> ArenaSeat::check(int rank) const {
  if (agrees(rank)) return {};
  const std::uint64_t known = std::min(signature_.sequence, kKnownCalls - 1);
  for (std::uint64_t call = signature_.sequence - known; call <= signature_.sequence; ++call) {
    const auto mine = layout_.published(self_, call);
    const auto theirs = layout_.published(rank, call);
    if (mine && theirs) GDRX_TRY(check_signature(*theirs, Rank{rank}, *mine, Rank{self_}));
  }
  GDRX_TRY(check_signature(post_of(rank).signature, Rank{rank}, signature_, Rank{self_}));
  return fail(Errc::mismatch,
              fmt::format("ranks {} and {} did not make the same calls before {}: all ranks must "
                          "make the same calls with the same arguments",
                          rank, self_, describe(signature_)));
}

Result<void> ArenaSeat::look_for_others() const {
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank == self_) continue;
    const auto theirs = layout_.published(rank, signature_.sequence);
    if (theirs) GDRX_TRY(check_signature(*theirs, Rank{rank}, signature_, Rank{self_}));
  }
  return {};
}

std::string waiting_for(const std::vector<Rank>& late, const std::string& what) {
  if (late.empty()) return "its next step";
  std::string ranks;
  for (const Rank rank : late) {
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", index(rank));
  }
  return fmt::format("rank(s) {} to {}", ranks, what);
}

}  // namespace gdrx::exec
