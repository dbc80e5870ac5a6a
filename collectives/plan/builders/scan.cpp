// SPDX-License-Identifier: Apache-2.0
// Sums of the ranks before, with one's own (scan) or without (exscan): along a chain for large
// vectors, in one hop for small ones. Both add in the order of ranks, so that they give the same
// bits. They accumulate in scratch: in place, what comes would overwrite this rank's own.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

constexpr std::int32_t kBefore = 0;  // scratch: the sum of the ranks before
constexpr std::int32_t kWith = 1;    // with this rank's own

void send_to_all_after(Channel& ops, std::int32_t n, std::int32_t rank) {
  for (std::int32_t peer = rank + 1; peer < n; ++peer) ops.push_back(send(in(0), peer));
}

void gather_from_all_before(Channel& ops, std::int32_t rank) {
  const ChunkRef sum = scratch(kBefore, 0);
  ops.push_back(recv_copy(sum, 0));
  for (std::int32_t peer = 1; peer < rank; ++peer) ops.push_back(recv_reduce(sum, sum, peer));
}

RankProgram chain_scan(std::int32_t n, std::int32_t rank) {
  const bool last = rank == n - 1;
  const ChunkRef sum = scratch(kBefore, 0);
  Channel ops;
  if (rank == 0) {
    ops.push_back(copy(out(0), in(0)));
  } else {
    ops.push_back(recv_copy(sum, rank - 1));
    ops.push_back(reduce(sum, in(0), last));
    ops.push_back(copy(out(0), sum));
  }
  if (!last) ops.push_back(send(out(0), rank + 1));
  return one_channel(std::move(ops), rank == 0 ? 0 : 1);
}

RankProgram direct_scan(std::int32_t n, std::int32_t rank) {
  Channel ops;
  send_to_all_after(ops, n, rank);
  if (rank == 0) {
    ops.push_back(copy(out(0), in(0)));
    return one_channel(std::move(ops));
  }
  gather_from_all_before(ops, rank);
  ops.push_back(reduce(scratch(kBefore, 0), in(0), rank == n - 1));
  ops.push_back(wait(in(0)));  // in place, the sends still read what is written next
  ops.push_back(copy(out(0), scratch(kBefore, 0)));
  return one_channel(std::move(ops), 1);
}

RankProgram chain_exscan(std::int32_t n, std::int32_t rank) {
  Channel ops;
  if (rank == 0) {
    ops.push_back(send(in(0), 1));
    return one_channel(std::move(ops));
  }
  const ChunkRef before = scratch(kBefore, 0);
  ops.push_back(recv_copy(before, rank - 1));
  if (rank < n - 1) {
    const ChunkRef with = scratch(kWith, 0);
    ops.push_back(copy(with, before));
    ops.push_back(reduce(with, in(0)));
    ops.push_back(send(with, rank + 1));
  }
  ops.push_back(copy(out(0), before));
  return one_channel(std::move(ops), rank < n - 1 ? 2 : 1);
}

RankProgram direct_exscan(std::int32_t n, std::int32_t rank) {
  Channel ops;
  send_to_all_after(ops, n, rank);
  if (rank == 0) return one_channel(std::move(ops));
  gather_from_all_before(ops, rank);
  ops.push_back(wait(in(0)));  // as in a scan
  ops.push_back(copy(out(0), scratch(kBefore, 0)));
  return one_channel(std::move(ops), 1);
}

constexpr std::array kScan{
    Row{Algorithm::ring, no_root<chain_scan>, in_a_chain, Order::of_ranks},
    Row{Algorithm::one_shot, no_root<direct_scan>, all_at_once, Order::of_ranks},
};
constexpr std::array kExscan{
    Row{Algorithm::ring, no_root<chain_exscan>, in_a_chain, Order::of_ranks},
    Row{Algorithm::one_shot, no_root<direct_exscan>, all_at_once, Order::of_ranks},
};

}  // namespace

constexpr Family families::scan{
    Collective::scan, kScan, [](const Ending& end) { return end.is_sum_of_first(end.rank + 1); }};
constexpr Family families::exscan{Collective::exscan, kExscan,
                                  [](const Ending& end) { return end.is_sum_of_first(end.rank); },
                                  true};

}  // namespace gdrx::plan::builders
