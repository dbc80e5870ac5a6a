// SPDX-License-Identifier: Apache-2.0
// Recursive halving (reduce-scatter) and doubling (all-gather), Rabenseifner's allReduce. Ranks
// beyond a power of two give their vector to a partner first and get the result back last.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

/// Chunks [begin, end).
struct Span {
  std::int32_t begin;
  std::int32_t end;
};

// What a rank keeps after exchanging with partners down to `distance`: the chunks that agree with
// its number in the bits from the top down to it.
Span kept(std::int32_t p, std::int32_t rank, std::int32_t distance) {
  const std::int32_t begin = rank & ~(distance - 1) & (p - 1);
  return {begin, begin + distance};
}

}  // namespace

RankProgram halving_doubling_all_reduce(std::int32_t n, std::int32_t rank) {
  const std::int32_t p = power_of_two_below(n);
  Channel ops;
  if (rank >= p) {
    for (std::int32_t c = 0; c < p; ++c) ops.push_back(send(in(c), rank - p));
    for (std::int32_t c = 0; c < p; ++c) ops.push_back(recv_copy(out(c), rank - p));
    return one_channel(std::move(ops));
  }
  const bool folds = rank + p < n;
  for (std::int32_t c = 0; folds && c < p; ++c) {
    ops.push_back(recv_reduce(out(c), in(c), rank + p, p == 1));
  }
  std::vector<bool> reduced(static_cast<std::size_t>(p), folds);
  const auto current = [&](std::int32_t c) {
    return reduced[static_cast<std::size_t>(c)] ? out(c) : in(c);
  };
  for (std::int32_t distance = p / 2; distance > 0; distance /= 2) {
    const std::int32_t partner = rank ^ distance;
    const Span mine = kept(p, rank, distance);
    const Span theirs = kept(p, partner, distance);
    // One out, one in: no more than a credit is ever needed.
    for (std::int32_t i = 0; i < distance; ++i) {
      ops.push_back(send(current(theirs.begin + i), partner));
      const std::int32_t c = mine.begin + i;
      ops.push_back(recv_reduce(out(c), current(c), partner, distance == 1));
      reduced[static_cast<std::size_t>(c)] = true;
    }
  }
  for (std::int32_t distance = 1; distance < p; distance *= 2) {
    const std::int32_t partner = rank ^ distance;
    const Span mine = kept(p, rank, distance);
    const Span theirs = kept(p, partner, distance);
    for (std::int32_t i = 0; i < distance; ++i) {
      ops.push_back(send(out(mine.begin + i), partner));
      ops.push_back(recv_copy(out(theirs.begin + i), partner));
    }
  }
  for (std::int32_t c = 0; folds && c < p; ++c) ops.push_back(send(out(c), rank + p));
  return one_channel(std::move(ops));
}

}  // namespace gdrx::plan::builders
