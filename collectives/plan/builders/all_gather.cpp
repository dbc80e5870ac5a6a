// SPDX-License-Identifier: Apache-2.0
// allGather: in a ring, or from everybody to everybody in one hop.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

RankProgram ring_all_gather(std::int32_t n, std::int32_t rank) {
  Channel ops;
  ops.push_back(copy(out(rank), in(0)));
  for (std::int32_t step = 0; step < n - 1; ++step) {
    ops.push_back(send(out(wrap(rank - step, n)), wrap(rank + 1, n)));
    ops.push_back(recv_copy(out(wrap(rank - step - 1, n)), wrap(rank - 1, n)));
  }
  return one_channel(std::move(ops));
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

constexpr std::array kAllGatherRows{
    Row{Algorithm::ring, no_root<ring_all_gather>, once_around},
    Row{Algorithm::one_shot, no_root<direct_all_gather>, one_by_one, Order::of_ranks},
};

}  // namespace

constexpr Family families::all_gather{
    Collective::all_gather, kAllGatherRows,
    [](const Ending& end) { return end.is(static_cast<std::int32_t>(end.chunk), 0); }};

}  // namespace gdrx::plan::builders
