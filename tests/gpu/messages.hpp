// SPDX-License-Identifier: Apache-2.0
// Messages between the ranks of a Ranks, and whether every byte of each came, and none beside it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "collectives/kernels/pairs.hpp"
#include "tests/gpu/moves.hpp"

namespace gdrx::gpu {

/// One message; where it lies in its sender's and its receiver's memory.
struct Letter {
  int from = 0;
  int to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t leaves = 0;
  std::uint64_t lands = 0;
};

/// Messages in the order of their calls, a pair's as all others.
class Mail {
 public:
  /// `gap` bytes lie between two of them, on both sides.
  explicit Mail(std::uint64_t gap = 0, std::uint64_t shift = 0) : gap_(gap), shift_(shift) {}

  void add(int from, int to, std::uint64_t bytes) {
    Letter letter{from, to, bytes};
    letter.leaves = place(sent_, from, bytes);
    letter.lands = place(received_, to, bytes);
    all_.push_back(letter);
  }
  const std::vector<Letter>& all() const { return all_; }
  std::uint64_t sent(int r) const { return end(sent_, r); }
  std::uint64_t received(int r) const { return end(received_, r); }

  /// Of letters `first` to `last`, what rank r has of them.
  Messages of(const Ranks& ranks, int r, std::size_t first = 0, std::size_t last = ~0UL) const {
    Messages what;
    what.streams = {ranks.stream(r)};
    for (std::size_t i = first; i < std::min(last, all_.size()); ++i) {
      const Letter& letter = all_[i];
      std::byte* const from = ranks.in(r) + letter.leaves;
      std::byte* const to = ranks.out(r) + letter.lands;
      if (letter.from == r && letter.to == r) {
        what.copies.push_back({from, to, letter.bytes});
      } else if (letter.from == r) {
        what.sends.push_back({Rank{letter.to}, from, letter.bytes, DataType::byte});
      } else if (letter.to == r) {
        what.receives.push_back({Rank{letter.from}, to, letter.bytes, DataType::byte});
      }
    }
    return what;
  }

 private:
  using Ends = std::map<int, std::uint64_t>;
  static std::uint64_t end(const Ends& ends, int r) {
    const auto found = ends.find(r);
    return found == ends.end() ? 0 : found->second;
  }
  std::uint64_t place(Ends& ends, int r, std::uint64_t bytes) const {
    const std::uint64_t at = ends.try_emplace(r, shift_).first->second;
    ends[r] = at + bytes + gap_;
    return at;
  }

  std::uint64_t gap_, shift_;
  std::vector<Letter> all_;
  Ends sent_, received_;
};

inline void prepare(const Ranks& ranks, int r, const Mail& mail, std::uint64_t seed) {
  std::vector<std::byte> input(mail.sent(r) + kGuard, std::byte{0x3c});
  for (std::size_t i = 0; i < mail.all().size(); ++i) {
    const Letter& letter = mail.all()[i];
    if (letter.from != r) continue;
    for (std::uint64_t k = 0; k < letter.bytes; ++k) {
      input[letter.leaves + k] = byte_of(r, letter.to, k, seed + i * 131);
    }
  }
  const std::vector<std::byte> output(mail.received(r) + kGuard, kPoison);
  copy_to(ranks, r, ranks.in(r), input.data(), input.size());
  copy_to(ranks, r, ranks.out(r), output.data(), output.size());
}

inline void check(const Ranks& ranks, int r, const Mail& mail, std::uint64_t seed) {
  std::vector<std::byte> got(mail.received(r) + kGuard);
  std::vector<std::byte> expected(got.size(), kPoison);
  for (std::size_t i = 0; i < mail.all().size(); ++i) {
    const Letter& letter = mail.all()[i];
    if (letter.to != r) continue;
    for (std::uint64_t k = 0; k < letter.bytes; ++k) {
      expected[letter.lands + k] = byte_of(letter.from, r, k, seed + i * 131);
    }
  }
  ranks.use(r);
  must(cudaMemcpy(got.data(), ranks.out(r), got.size(), cudaMemcpyDeviceToHost), "copy");
  const auto wrong = std::mismatch(got.begin(), got.end(), expected.begin());
  EXPECT_TRUE(wrong.first == got.end())
      << "rank " << r << " of " << ranks.size() << ", byte " << wrong.first - got.begin();
}

inline void exchange(const Ranks& ranks, int r, const Messages& what, int blocks = 0) {
  ranks.use(r);
  must(ranks.path(r).exchange(what, blocks > 0 ? blocks : ranks.host().blocks));
}

/// All of it at once on every rank.
inline void deliver(const Ranks& ranks, const Mail& mail, std::uint64_t seed, int blocks = 0) {
  for (int r = 0; r < ranks.size(); ++r) prepare(ranks, r, mail, seed);
  for (int r = 0; r < ranks.size(); ++r) exchange(ranks, r, mail.of(ranks, r), blocks);
  ranks.synchronize();
  for (int r = 0; r < ranks.size(); ++r) check(ranks, r, mail, seed);
}

}  // namespace gdrx::gpu
