// SPDX-License-Identifier: Apache-2.0
// A rank's own place in the arena: which calls it has made, and who may still read what it gave.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/exec/arena_layout.hpp"
#include "collectives/exec/call_signature.hpp"
#include "collectives/exec/partition.hpp"
#include "collectives/reduce/reducer.hpp"
#include "collectives/trace/span.hpp"
#include "gdrx/result.hpp"
#include "transport/memory/process_memory.hpp"

namespace gdrx::exec {

struct ArenaCall {
  CallSignature signature;  // algorithm one_shot or two_shot
  std::uint64_t base = 0;   // stage at which it starts, the same on every rank
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::span<const ProcessTicket> processes{};  // by rank, to write results into; empty: read them
  WriteGate* gate = nullptr;                   // of `output`, with processes
  trace::Track* track = nullptr;               // outlives the execution; null: nobody watches
  const reduce::UserOperator* user = nullptr;  // as that; null: a built-in operator
  const std::vector<Part>* parts = nullptr;    // of each rank, where they differ; as that
};

/// Where a call has a root, ranks may leave it before others have entered it. So a rank writes over
/// a post or a shelf of its own only when those who were to read it have passed that call. Each
/// tells how far it has come at the end of a call that uses a shelf, and else at the beginning of
/// every sixteenth: who gives may be sixteen calls ahead of the slowest reader, by posts, and as
/// many as there are shelves. In a call in which all wait for all nobody has to ask: who has given
/// has passed the calls before. Such calls, meetings, have posts of their own, two in turn, and two
/// slots: these stay in the nearest cache.
class ArenaSeat {
 public:
  static constexpr int kAll = -1;  // every rank, where one is meant else
  /// A part of the ring: nobody waits for a word about calls that its readers have long passed.
  static constexpr std::uint64_t kTellEvery = kPosts / 2;

  ArenaSeat(const ArenaLayout& layout, int self);
  const ArenaLayout& layout() const noexcept { return layout_; }
  int self() const noexcept { return self_; }

  /// A call begins, on whichever path; those before it are done. The next are about it.
  void begin(const CallSignature& signature) noexcept;
  /// `rooted`: as its collective is.
  void begin(const CallSignature& signature, bool rooted) noexcept;
  const CallSignature& signature() const noexcept { return signature_; }
  bool rooted() const noexcept { return rooted_; }
  /// Whether this rank's post may be written over, or its shelf.
  bool may_post() noexcept { return !rooted_ || over(posts_[signature_.sequence % kPosts]); }
  bool may_fill() noexcept { return over(shelves_[shelf_]); }
  /// Of the call, if it has a root.
  std::byte* shelf_of(int rank) const noexcept { return layout_.shelf(shelf_, rank); }
  /// Of whom either waits, since it said no.
  int late_reader() const noexcept { return late_; }
  /// Him, for whoever asks at any time; none before either has said no in this call.
  std::vector<Rank> late_readers() const;
  /// Publishes the post, whose data and slot are written. `reader`: whom it is for.
  void post(int reader) noexcept;
  void filled(int reader) noexcept { shelves_[shelf_] = {signature_.sequence + 1, reader}; }
  bool has_come(int rank) const noexcept {
    // acquire: pairs with the release in post(), so that what he wrote is seen
    return post_of(rank).call.load(std::memory_order_acquire) > signature_.sequence;
  }
  /// Every other rank has: all have passed the calls before.
  void all_have_come() noexcept {
    floor_ = signature_.sequence;
    met_ = true;
  }
  /// Where the rank gives to this call.
  ArenaPost& post_of(int rank) const noexcept {
    return rooted_ ? layout_.post(signature_.sequence, rank)
                   : layout_.line(rank).fronts[meetings_ & 1];
  }
  /// Of one that has come: whether it makes the same call, and has made the same before.
  bool agrees(int rank) const noexcept {
    const ArenaPost& theirs = post_of(rank);
    return theirs.signature == signature_ && theirs.past == past_;
  }
  /// Likewise; Errc::mismatch names the first call in which the two differ.
  Result<void> check(int rank) const;
  /// Whether a peer has published another signature for this call, so far.
  Result<void> look_for_others() const;
  /// This rank reads nothing of the call any more.
  void end(bool used_shelf) noexcept;
  /// A place for an address a rank, that of whoever runs the call.
  std::span<const void*> operands() noexcept { return operands_; }

 private:
  struct Use {
    std::uint64_t until = 0;  // they have passed the call before that one
    int reader = kAll;
  };
  bool over(const Use& use) noexcept { return use.until <= floor_ || is_read(use); }
  bool is_read(const Use& use) noexcept;

  ArenaLayout layout_;
  int self_;
  CallSignature signature_;
  std::uint64_t past_ = 0;       // as the post's
  std::uint64_t next_past_ = 0;  // that of the next call, once this one is posted
  bool posted_ = false;
  std::uint64_t floor_ = 0;  // all have passed the calls before this one
  bool rooted_ = false;
  bool met_ = false;            // all have come to this call
  std::uint64_t meetings_ = 0;  // calls without a root before it to which all have come
  int late_ = kAll;  // in this call, of whom it was asked whether he has; kAll: of nobody
  std::array<Use, kPosts> posts_{};
  std::vector<Use> shelves_;
  std::size_t shelf_ = 0;  // whose turn it is
  std::vector<const void*> operands_;
};

/// One part that differs always makes another digest, several almost always.
inline std::uint64_t digest(std::uint64_t past, const CallSignature& signature) noexcept {
  for (const std::uint64_t part :
       std::bit_cast<std::array<std::uint64_t, kSignatureParts>>(signature)) {
    past = (std::rotl(past, 23) ^ part) * 0x9E3779B97F4A7C15;
  }
  return past;
}

// Each call comes through the next three.
inline void ArenaSeat::begin(const CallSignature& signature, bool rooted) noexcept {
  past_ = posted_ ? next_past_ : digest(past_, signature_);
  posted_ = false;
  if (met_ && !rooted_) ++meetings_;
  met_ = false;
  rooted_ = rooted;
  signature_ = signature;
  late_ = kAll;
  layout_.publish(self_, signature, signature.sequence);
  // relaxed: what was read in the calls before, was read before the fence of publish(), which pairs
  // with is_read()
  if (signature.sequence % kTellEvery == 0) {
    layout_.line(self_).passed.store(signature.sequence, std::memory_order_relaxed);
  }
}

inline void ArenaSeat::end(bool used_shelf) noexcept {
  if (!used_shelf) return;
  // release: what was read, was read before anybody writes over it
  layout_.line(self_).passed.store(signature_.sequence + 1, std::memory_order_release);
  if (++shelf_ == shelves_.size()) shelf_ = 0;
}

inline void ArenaSeat::post(int reader) noexcept {
  ArenaPost& mine = post_of(self_);
  mine.signature = signature_;
  mine.past = past_;
  if (rooted_) posts_[signature_.sequence % kPosts] = {signature_.sequence + 1, reader};
  // release: publishes the signature and what was given
  mine.call.store(signature_.sequence + 1, std::memory_order_release);
  // Now that the others have something to do.
  next_past_ = digest(past_, signature_);
  posted_ = true;
}

/// For a person: whom an execution waits for, and what they have to do.
std::string waiting_for(const std::vector<Rank>& late, const std::string& what);
inline constexpr const char* kToTake = "take what it gave before";

}  // namespace gdrx::exec
