// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/arena_seat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <optional>

#include "gdrx/traits.hpp"

namespace gdrx::exec {
namespace {

// A part of the ring: nobody waits for a word about calls that its readers have long passed.
constexpr std::uint64_t kTellEvery = kPosts / 2;

// One part that differs always makes another digest, several almost always.
std::uint64_t digest(std::uint64_t past, const Word& word) noexcept {
  for (const std::uint64_t part : std::bit_cast<std::array<std::uint64_t, kWordParts>>(word)) {
    past = (std::rotl(past, 23) ^ part) * 0x9E3779B97F4A7C15;
  }
  return past;
}

}  // namespace

ArenaSeat::ArenaSeat(const ArenaLayout& layout, int self)
    : layout_(layout),
      self_(self),
      shelves_(layout.shelves()),
      operands_(static_cast<std::size_t>(layout.ranks())) {}

void ArenaSeat::begin(const Word& word) noexcept {
  past_ = posted_ ? next_past_ : digest(past_, word_);
  posted_ = false;
  if (met_ && !rooted_) ++meetings_;
  met_ = false;
  rooted_ = plan::traits_of(word.collective).rooted;
  word_ = word;
  late_ = kAll;
  layout_.publish(self_, word, word.sequence);
  // release: pairs with is_read(), as in end()
  if (word.sequence % kTellEvery == 0) {
    layout_.line(self_).passed.store(word.sequence, std::memory_order_release);
  }
}

void ArenaSeat::end(bool used_shelf) noexcept {
  if (!used_shelf) return;
  // release: what was read, was read before anybody writes over it
  layout_.line(self_).passed.store(word_.sequence + 1, std::memory_order_release);
  if (++shelf_ == shelves_.size()) shelf_ = 0;
}

void ArenaSeat::post(int reader) noexcept {
  ArenaPost& mine = post_of(self_);
  mine.word = word_;
  mine.past = past_;
  if (rooted_) posts_[word_.sequence % kPosts] = {word_.sequence + 1, reader};
  // release: publishes the word and what was given
  mine.call.store(word_.sequence + 1, std::memory_order_release);
  // Now that the others have something to do.
  next_past_ = digest(past_, word_);
  posted_ = true;
}

std::vector<Rank> ArenaSeat::late_readers() const {
  if (late_ == kAll) return {};
  return {Rank{late_}};
}

bool ArenaSeat::is_read(const Use& use) noexcept {
  // acquire: pairs with the release in end() and begin(), so that it is written over after that
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
  const std::uint64_t known = std::min(word_.sequence, kKnownCalls - 1);
  for (std::uint64_t call = word_.sequence - known; call <= word_.sequence; ++call) {
    const auto mine = layout_.published(self_, call);
    const auto theirs = layout_.published(rank, call);
    if (mine && theirs) GDRX_TRY(check_word(*theirs, Rank{rank}, *mine, Rank{self_}));
  }
  GDRX_TRY(check_word(post_of(rank).word, Rank{rank}, word_, Rank{self_}));
  return fail(Errc::mismatch,
              fmt::format("ranks {} and {} did not make the same calls before {}: all ranks must "
                          "make the same calls with the same arguments",
                          rank, self_, describe(word_)));
}

Result<void> ArenaSeat::look_for_others() const {
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank == self_) continue;
    const auto theirs = layout_.published(rank, word_.sequence);
    if (theirs) GDRX_TRY(check_word(*theirs, Rank{rank}, word_, Rank{self_}));
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
