// SPDX-License-Identifier: Apache-2.0
// Recursive halving (reduce-scatter) and doubling (all-gather), Rabenseifner's allReduce. Ranks
// beyond a power of two give their vector to a partner first and get the result back last.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

// The first of the `distance` chunks that a rank keeps after exchanging with partners down to
// `distance`: those that agree with its number in the bits from the top down to it.
std::int32_t first_kept(std::int32_t p, std::int32_t rank, std::int32_t distance) {
  return rank & ~(distance - 1) & (p - 1);
}

}  // namespace

// A message is a range of chunks: log2(n) of them each way, of a half, a quarter, ... of the
// vector.
RankProgram halving_doubling_all_reduce(std::int32_t n, std::int32_t rank) {
  const std::int32_t p = power_of_two_below(n);
  Channel ops;
  if (rank >= p) {
    ops.push_back(send(range(in(0), p), rank - p));
    ops.push_back(recv_copy(range(out(0), p), rank - p));
    return one_channel(std::move(ops));
  }
  const bool folds = rank + p < n;
  if (folds) ops.push_back(recv_reduce(range(out(0), p), range(in(0), p), rank + p, p == 1));
  bool reduced = folds;  // what has been kept so far lies in the output
  for (std::int32_t distance = p / 2; distance > 0; distance /= 2) {
    const std::int32_t partner = rank ^ distance;
    const std::int32_t mine = first_kept(p, rank, distance);
    const std::int32_t theirs = first_kept(p, partner, distance);
    ops.push_back(send(range(reduced ? out(theirs) : in(theirs), distance), partner));
    ops.push_back(recv_reduce(range(out(mine), distance),
                              range(reduced ? out(mine) : in(mine), distance), partner,
                              distance == 1));
    reduced = true;
  }
  for (std::int32_t distance = 1; distance < p; distance *= 2) {
    const std::int32_t partner = rank ^ distance;
    ops.push_back(send(range(out(first_kept(p, rank, distance)), distance), partner));
    ops.push_back(recv_copy(range(out(first_kept(p, partner, distance)), distance), partner));
  }
  if (folds) ops.push_back(send(range(out(0), p), rank + p));
  return one_channel(std::move(ops));
}

}  // namespace gdrx::plan::builders
