// SPDX-License-Identifier: Apache-2.0
// reduceScatter: in a ring, or from everybody to everybody in one hop, which adds in absolute rank
// order.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

// Partial sums live in two scratch chunks in turn, since the input is the caller's. A scratch chunk
// is written again two steps later: its send must have completed.
RankProgram ring_reduce_scatter(std::int32_t n, std::int32_t rank) {
  const std::int32_t next = wrap(rank + 1, n);
  const std::int32_t previous = wrap(rank - 1, n);
  Channel ops;
  for (std::int32_t step = 0; step < n - 1; ++step) {
    const std::int32_t sent = wrap(rank - step - 1, n);
    const std::int32_t received = wrap(rank - step - 2, n);
    const bool last = step == n - 2;
    ops.push_back(send(step == 0 ? in(sent) : scratch((step - 1) % 2, sent), next));
    if (!last && step >= 2) ops.push_back(wait(scratch(step % 2, received)));
    ops.push_back(
        recv_reduce(last ? out(0) : scratch(step % 2, received), in(received), previous, last));
  }
  return one_channel(std::move(ops), n > 2 ? 2 : 0);
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

constexpr std::array kReduceScatterRows{
    Row{Algorithm::ring, no_root<ring_reduce_scatter>, once_around},
    Row{Algorithm::two_shot, no_root<direct_reduce_scatter>, once_around, Order::of_ranks},
};

}  // namespace

constexpr Family families::reduce_scatter{
    Collective::reduce_scatter, kReduceScatterRows,
    [](const Ending& end) { return end.is_sum(static_cast<std::uint32_t>(end.rank)); }};

}  // namespace gdrx::plan::builders
