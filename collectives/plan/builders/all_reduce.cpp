// SPDX-License-Identifier: Apache-2.0
// allReduce, whose algorithms have a file each, and the barrier, an allReduce of nothing.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {

RankProgram ring_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram tree_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram halving_doubling_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram one_shot_all_reduce(std::int32_t n, std::int32_t rank);
RankProgram two_shot_all_reduce(std::int32_t n, std::int32_t rank);

namespace {

constexpr Row kRing{Algorithm::ring, no_root<ring_all_reduce>, twice_around, Order::any, each};
constexpr Row kTree{Algorithm::tree, no_root<tree_all_reduce>, up_and_down, Order::any, two, 2};
constexpr Row kHalvingDoubling{Algorithm::halving_doubling, no_root<halving_doubling_all_reduce>,
                               by_halves, Order::any, power_of_two_below};
constexpr Row kOneShot{Algorithm::one_shot, no_root<one_shot_all_reduce>, one_by_one,
                       Order::of_ranks};
constexpr Row kTwoShot{Algorithm::two_shot, no_root<two_shot_all_reduce>, twice_around,
                       Order::of_ranks, each};

constexpr std::array kAllReduce{kRing, kTree, kHalvingDoubling, kOneShot, kTwoShot};
constexpr std::array kBarrier{kTree, kHalvingDoubling};

bool holds(const Ending& end) { return end.is_same_sum(); }

}  // namespace

constexpr Family families::all_reduce{Collective::all_reduce, kAllReduce, holds};
constexpr Family families::barrier{Collective::barrier, kBarrier, holds};

}  // namespace gdrx::plan::builders
