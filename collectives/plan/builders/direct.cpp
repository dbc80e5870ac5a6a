// SPDX-License-Identifier: Apache-2.0
// Everybody to everybody, one hop: one-shot, two-shot, their halves and
// a reduce. Reductions run in absolute
// rank order, so that every algorithm here gives the same bits. They accumulate in scratch, because
// in place the first contribution would overwrite this rank's own.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

// The sum = contribution of 0 (op) 1 (op) ... (op) n - 1; this rank's own is `own`.
void gather_in_rank_order(Channel& ops, std::int32_t n, std::int32_t rank, ChunkRef own) {
  const ChunkRef sum = scratch(0, static_cast<std::int32_t>(own.chunk));
  ops.push_back(rank == 0 ? copy(sum, own) : recv_copy(sum, 0));
  for (std::int32_t source = 1; source < n; ++source) {
    const bool last = source == n - 1;
    ops.push_back(source == rank ? reduce(sum, own, last) : recv_reduce(sum, sum, source, last));
  }
}

}  // namespace

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

RankProgram direct_reduce_scatter(std::int32_t n, std::int32_t rank) {
  Channel ops;
  for (std::int32_t i = 1; i < n; ++i) {
    const std::int32_t peer = wrap(rank + i, n);
    ops.push_back(send(in(peer), peer));
  }
  gather_in_rank_order(ops, n, rank, in(rank));
  ops.push_back(copy(out(0), scratch(0, rank)));
  return one_channel(std::move(ops), 1);
}

RankProgram direct_reduce(std::int32_t n, std::int32_t rank, std::int32_t root) {
  if (rank != root) return one_channel({send(in(0), root)});
  Channel ops;
  gather_in_rank_order(ops, n, rank, in(0));
  ops.push_back(copy(out(0), scratch(0, 0)));
  return one_channel(std::move(ops), 1);
}

RankProgram direct_all_gather(std::int32_t n, std::int32_t rank) {
  Channel ops;
  ops.push_back(copy(out(rank), in(0)));
  for (std::int32_t i = 1; i < n; ++i) ops.push_back(send(out(rank), wrap(rank + i, n)));
  for (std::int32_t i = 1; i < n; ++i) {
    const std::int32_t peer = wrap(rank - i, n);
    ops.push_back(recv_copy(out(peer), peer));
  }
  return one_channel(std::move(ops));
}

}  // namespace gdrx::plan::builders
