// SPDX-License-Identifier: Apache-2.0
// A call of one block in one hop: each rank gives what others need of its input, and takes what it
// needs of theirs. With a root, ranks that only give or only take do not wait for each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/exec/arena_seat.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/partition.hpp"
#include "gdrx/plan.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::exec {

inline bool is_scan(Collective collective) noexcept {
  return collective == Collective::scan || collective == Collective::exscan;
}
/// Whether calls of that collective can be made so: those whose outputs follow from their traits,
/// and in which every rank knows the lengths of all parts. Others run by their plans.
inline bool has_one_block(Collective collective) noexcept {
  using enum Collective;
  const plan::CollectiveTraits& traits = plan::traits_of(collective);
  if (traits.has_parts()) return !traits.by_messages();
  if (traits.by_messages()) return collective != send_recv;
  return collective == all_reduce || collective == reduce_scatter || collective == all_gather ||
         collective == broadcast || collective == reduce || is_scan(collective);
}
/// Bytes of the longest: what any rank gives at most of those that each has.
inline std::uint64_t longest_of(const std::vector<Part>& parts, std::size_t element) noexcept {
  std::uint64_t most = 0;
  for (const Part& part : parts) most = std::max(most, part.range.count * element);
  return most;
}
/// Bytes that a rank gives. `vector`: of the longer of a call's buffers.
constexpr std::uint64_t given_of(const plan::CollectiveTraits& traits, std::uint64_t vector,
                                 int ranks) noexcept {
  const bool a_part = plan::CollectiveTraits::is_all(traits.output) &&
                      !plan::CollectiveTraits::is_all(traits.input);
  return a_part ? vector / static_cast<std::uint64_t>(ranks) : vector;
}

/// What the call asks of a rank, by its collective's traits and its root: alike in every call of
/// that signature, but for its sequence.
struct Hop {
  Hop() = default;
  /// `parts`: of a collective that has them.
  Hop(const CallSignature& signature, const std::vector<Part>* parts, int self, int ranks) noexcept;
  int from = ArenaSeat::kAll;  // who has an input
  int to = ArenaSeat::kAll;    // who has an output
  bool gives = false;          // to another rank
  bool takes = false;
  bool reduces = false;
  std::uint64_t bytes = 0;   // that this rank gives
  std::uint64_t most = 0;    // that any rank gives
  std::uint64_t count = 0;   // elements that are made
  std::uint64_t part = 0;    // bytes, of which those are made
  std::uint64_t offset = 0;  // what this rank takes of them
  std::uint64_t stride = 0;  // between what it takes, in its output
  plan::Traffic traffic;     // of this rank
  Counters counters() const noexcept { return {1, traffic.sends, traffic.receives}; }
};

/// What else a call has.
struct BlockCall {
  std::uint64_t base = 0;  // as ArenaCall's, and so the next
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  const reduce::UserOperator* user = nullptr;
  const std::vector<Part>* parts = nullptr;
};

/// Its two stages, without traces. Keeps references to what its call is made of. The call is the
/// one that `seat` has begun.
class OneBlock {
 public:
  OneBlock(ArenaSeat& seat, const Hop& hop, const BlockCall& call) noexcept
      : seat_(seat),
        call_(call),
        hop_(hop),
        in_post_(hop.most <= ArenaPost::kData),
        on_shelf_(!in_post_ && seat.rooted()),
        given_(!hop.gives) {}
  OneBlock(ArenaSeat& seat, const ArenaCall& call) noexcept
      : OneBlock(seat, Hop(call.signature, call.parts, seat.self(), seat.layout().ranks()),
                 BlockCall{call.base, call.input, call.output, call.user, call.parts}) {}
  /// All of it, if that is possible within so many looks at the others. False: it is not ended, and
  /// goes on step by step.
  bool run(int looks) noexcept;
  bool given() const noexcept { return given_; }
  /// Whether nobody reads any more what give() writes over.
  bool may_give() noexcept { return seat_.may_post() && (!on_shelf_ || seat_.may_fill()); }
  void give() noexcept;
  /// Whether all have given of whom it takes.
  bool have_come() noexcept;
  /// Goes on as far as it can. True: it has given, and all have come.
  bool ready() noexcept {
    if (!given_) {
      if (!may_give()) return false;
      give();
    }
    return have_come();
  }
  /// After that: whether they make the same call. It is not ended otherwise.
  bool agrees() const noexcept;
  Result<void> check() const;
  /// After that: the result.
  void end() noexcept;
  std::uint64_t end_stage() const noexcept { return call_.base + (in_post_ || on_shelf_ ? 0 : 1); }
  /// That this rank gives.
  std::uint64_t bytes() const noexcept { return hop_.bytes; }
  bool reduces() const noexcept { return hop_.reduces; }
  const plan::Traffic& traffic() const noexcept { return hop_.traffic; }
  Counters counters() const noexcept { return hop_.counters(); }
  /// When it could not go on: for whom it waits.
  int late() const noexcept { return given_ ? late_ : seat_.late_reader(); }
  std::vector<Rank> awaited() const;

 private:
  void take() noexcept;
  void move() noexcept;
  std::byte* place_of(int rank) const noexcept;
  const std::byte* given_by(int rank) const noexcept;
  /// Calls `look(rank)` for each other of whom it takes, until it says no.
  template <class Look>
  bool each_giver(Look look) const;

  ArenaSeat& seat_;
  BlockCall call_;
  Hop hop_;
  bool in_post_;
  bool on_shelf_;
  bool given_;
  int late_ = 0;  // ranks before this one have come
};

}  // namespace gdrx::exec
