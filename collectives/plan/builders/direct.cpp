// SPDX-License-Identifier: Apache-2.0
// allReduce from everybody to everybody, in one hop or two. Reductions run in absolute rank order,
// so that both give the same bits. They accumulate in scratch, because in place the first
// contribution would overwrite this rank's own.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {

RankProgram one_shot_all_reduce(std::int32_t n, std::int32_t rank) {
  Channel ops;
  for (std::int32_t i = 1; i < n; ++i) ops.push_back(send(in(0), wrap(rank + i, n)));
  gather_in_rank_order(ops, n, rank, in(0));
  ops.push_back(wait(in(0)));  // in place, the sends still read what is written next
  ops.push_back(copy(out(0), scratch(0, 0)));
  return one_channel(std::move(ops), 1);
}

RankProgram two_shot_all_reduce(std::int32_t n, std::int32_t rank) {
  Channel ops;
  for (std::int32_t i = 1; i < n; ++i) {
    const std::int32_t peer = wrap(rank + i, n);
    ops.push_back(send(in(peer), peer));
  }
  gather_in_rank_order(ops, n, rank, in(rank));
  ops.push_back(copy(out(rank), scratch(0, rank)));
  for (std::int32_t i = 1; i < n; ++i) ops.push_back(send(out(rank), wrap(rank + i, n)));
  // A peer's result comes after it has used our contribution: in place no wait is needed.
  for (std::int32_t i = 1; i < n; ++i) {
    const std::int32_t peer = wrap(rank - i, n);
    ops.push_back(recv_copy(out(peer), peer));
  }
  return one_channel(std::move(ops), 1);
}

}  // namespace gdrx::plan::builders
