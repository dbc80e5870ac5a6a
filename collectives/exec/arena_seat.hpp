// SPDX-License-Identifier: Apache-2.0
// A rank's own place in the arena: which calls it has made, and who may still read what it gave.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/exec/arena_layout.hpp"
#include "collectives/exec/word.hpp"
#include "collectives/reduce/reducer.hpp"
#include "collectives/trace/span.hpp"
#include "gdrx/result.hpp"
#include "transport/memory/process_memory.hpp"

namespace gdrx::exec {

struct ArenaCall {
  Word word;               // algorithm one_shot or two_shot
  std::uint64_t base = 0;  // stage at which it starts, the same on every rank
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::span<const std::int32_t> processes{};   // by rank, to write results into; empty: read them
  WriteGate* gate = nullptr;                   // of `output`, with processes
  trace::Track* track = nullptr;               // outlives the execution; null: nobody watches
  const reduce::UserOperator* user = nullptr;  // as that; null: the word's operator has a kernel
};

/// Where a call has a root, ranks may leave it before others have entered it. So a rank writes over
/// a post or a slot of its own only when those who were to read it have passed that call. Each
/// tells how far it has come at the end of a call that uses slots, and else at the beginning of
/// every eighth: who gives may be eight calls ahead of the slowest reader, by posts, and two by
/// slots. In a call in which all wait for all nobody has to ask: who has given has passed the calls
/// before.
class ArenaSeat {
 public:
  static constexpr int kAll = -1;  // every rank, where one is meant else

  ArenaSeat(const ArenaLayout& layout, int self);
  const ArenaLayout& layout() const noexcept { return layout_; }
  int self() const noexcept { return self_; }

  /// A call begins, on whichever path; those before it are done. The next are about it.
  void begin(const Word& word) noexcept;
  /// Whether this rank's post may be written over, or its slot.
  bool may_post() noexcept { return over(posts_[word_.sequence % kPosts]); }
  bool may_fill(std::uint64_t generation) noexcept { return over(slots_[generation & 1]); }
  /// Of whom either waits, since it said no.
  int late_reader() const noexcept { return late_; }
  /// For speed alone, of a rank that is some calls ahead: what it has posted for a later one is on
  /// its way before that begins. Of any other it would slow the posts down.
  void expect_of(int rank) const noexcept {
    __builtin_prefetch(&layout_.post(word_.sequence + kNear, rank));
  }
  /// Publishes the post, whose data and slot are written. `reader`: whom it is for.
  void post(int reader) noexcept;
  void filled(std::uint64_t generation, int reader) noexcept;
  /// It is known that nobody reads that slot.
  void emptied(std::uint64_t generation) noexcept { slots_[generation & 1] = {}; }
  bool has_come(int rank) const noexcept {
    // acquire: pairs with the release in post(), so that what he wrote is seen
    return their_post(rank).call.load(std::memory_order_acquire) > word_.sequence;
  }
  /// Every other rank has: all have passed the calls before.
  void all_have_come() noexcept { floor_ = word_.sequence; }
  const ArenaPost& their_post(int rank) const noexcept {
    return layout_.post(word_.sequence, rank);
  }
  /// Of one that has come: whether it makes the same call, and has made the same before.
  bool agrees(int rank) const noexcept {
    const ArenaPost& theirs = their_post(rank);
    return theirs.word == word_ && theirs.past == past_;
  }
  /// Likewise; Errc::mismatch names the first call in which the two differ.
  Result<void> check(int rank) const;
  /// Whether a peer has published another word for this call, so far.
  Result<void> look_for_others() const;
  /// This rank reads nothing of the call any more.
  void end(bool used_slots) noexcept;
  /// A place for an address a rank, that of whoever runs the call.
  std::span<const void*> operands() noexcept { return operands_; }

 private:
  static constexpr std::uint64_t kNear = 2;  // calls, in which a cache line moves

  struct Use {
    std::uint64_t until = 0;  // they have passed the call before that one
    int reader = kAll;
  };
  bool over(const Use& use) noexcept { return use.until <= floor_ || is_read(use); }
  bool is_read(const Use& use) noexcept;

  ArenaLayout layout_;
  int self_;
  Word word_;
  std::uint64_t past_ = 0;
  std::uint64_t floor_ = 0;  // all have passed the calls before this one
  int late_ = kAll;
  std::array<Use, kPosts> posts_{};
  std::array<Use, 2> slots_{};
  std::vector<const void*> operands_;
};

}  // namespace gdrx::exec
