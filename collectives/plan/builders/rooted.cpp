// SPDX-License-Identifier: Apache-2.0
// Broadcast and reduce: a pipelined chain for large vectors, a binomial tree for small ones. Places
// are counted from the root. A reduce needs an output on the root only: others accumulate in
// scratch. A reduce of one hop adds in absolute rank order.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

// Children of a place in the binomial tree over n places, nearest first.
std::vector<std::int32_t> binomial_children(std::int32_t n, std::int32_t place) {
  std::vector<std::int32_t> children;
  for (std::int32_t bit = 1; place + bit < n; bit *= 2) {
    if ((place & bit) != 0) break;
    children.push_back(place + bit);
  }
  return children;
}

std::int32_t binomial_parent(std::int32_t place) { return place & (place - 1); }

// A place that receives from `parent` (none at the root) and sends to `children`, far ones first.
RankProgram broadcast(std::int32_t n, std::int32_t root, std::int32_t place, std::int32_t parent,
                      const std::vector<std::int32_t>& children) {
  Channel ops;
  if (place == 0) {
    ops.push_back(copy(out(0), in(0)));
  } else {
    ops.push_back(recv_copy(out(0), wrap(parent + root, n)));
  }
  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    ops.push_back(send(out(0), wrap(*child + root, n)));
  }
  return one_channel(std::move(ops));
}

RankProgram reduce_to(std::int32_t n, std::int32_t root, std::int32_t place, std::int32_t parent,
                      const std::vector<std::int32_t>& children) {
  const ChunkRef sum = place == 0 ? out(0) : scratch(0, 0);
  Channel ops;
  bool first = true;
  for (const std::int32_t child : children) {
    const bool complete = place == 0 && child == children.back();
    ops.push_back(recv_reduce(sum, first ? in(0) : sum, wrap(child + root, n), complete));
    first = false;
  }
  if (place != 0) ops.push_back(send(children.empty() ? in(0) : sum, wrap(parent + root, n)));
  return one_channel(std::move(ops), place != 0 && !children.empty() ? 1 : 0);
}

std::vector<std::int32_t> chain_child(std::int32_t n, std::int32_t place) {
  if (place + 1 == n) return {};
  return {place + 1};
}

RankProgram chain_broadcast(std::int32_t n, std::int32_t rank, std::int32_t root) {
  const std::int32_t place = wrap(rank - root, n);
  return broadcast(n, root, place, place - 1, chain_child(n, place));
}

RankProgram chain_reduce(std::int32_t n, std::int32_t rank, std::int32_t root) {
  const std::int32_t place = wrap(rank - root, n);
  return reduce_to(n, root, place, place - 1, chain_child(n, place));
}

RankProgram binomial_broadcast(std::int32_t n, std::int32_t rank, std::int32_t root) {
  const std::int32_t place = wrap(rank - root, n);
  return broadcast(n, root, place, binomial_parent(place), binomial_children(n, place));
}

RankProgram binomial_reduce(std::int32_t n, std::int32_t rank, std::int32_t root) {
  const std::int32_t place = wrap(rank - root, n);
  return reduce_to(n, root, place, binomial_parent(place), binomial_children(n, place));
}

RankProgram direct_reduce(std::int32_t n, std::int32_t rank, std::int32_t root) {
  if (rank != root) return one_channel({send(in(0), root)});
  Channel ops;
  gather_in_rank_order(ops, n, rank, in(0));
  ops.push_back(copy(out(0), scratch(0, 0)));
  return one_channel(std::move(ops), 1);
}

constexpr std::array kBroadcast{
    Row{Algorithm::ring, at_root<chain_broadcast>, in_a_chain},
    Row{Algorithm::tree, at_root<binomial_broadcast>, up_and_down},
};
constexpr std::array kReduce{
    Row{Algorithm::ring, at_root<chain_reduce>, in_a_chain},
    Row{Algorithm::tree, at_root<binomial_reduce>, up_and_down},
    Row{Algorithm::one_shot, at_root<direct_reduce>, one_by_one, Order::of_ranks},
};

}  // namespace

constexpr Family families::broadcast{Collective::broadcast, kBroadcast,
                                     [](const Ending& end) { return end.is(end.root, end.chunk); }};
constexpr Family families::reduce{Collective::reduce, kReduce,
                                  [](const Ending& end) { return end.is_sum(end.chunk); }};

}  // namespace gdrx::plan::builders
