// SPDX-License-Identifier: Apache-2.0
// allReduceLeaves: each rank reduces what of the tree lies within its own leaves, and gives those
// partial results to whoever needs them: to everybody, or each part of the vector to one rank, who
// gives the whole to the others. A node of the tree is one operation with two operands, so that it
// is rounded wherever it is reduced.
#include <algorithm>
#include <map>

#include "collectives/plan/builders/builders.hpp"
#include "collectives/plan/leaf_tree.hpp"

namespace gdrx::plan::builders {
namespace {

class Leaves {
 public:
  /// `parts` of the vector; this rank finishes the one with the number `mine`.
  Leaves(const Spec& spec, std::int32_t rank, std::int32_t parts, std::int32_t mine)
      : rank_(rank), parts_(parts), mine_(mine) {
    for (std::int32_t r = 0; r < spec.ranks; ++r) {
      runs_.push_back({tree_.end, tree_.end + leaves_of(spec, r)});
      tree_.end = runs_.back().end;
    }
    for (const LeafNode& run : runs_) add_nodes_within(tree_, run, nodes_.emplace_back());
  }

  /// In rounds, a node of each rank in each: nobody sends a second before the first was received.
  void reduce_all() {
    std::size_t rounds = 0;
    for (const auto& nodes : nodes_) rounds = std::max(rounds, nodes.size());
    for (std::size_t round = 0; round < rounds; ++round) {
      const ChunkRef value = round < own().size() ? sent(own()[round]) : ChunkRef{};
      for (std::int32_t source = 0; source < ranks(); ++source) {
        const auto& nodes = nodes_[static_cast<std::size_t>(source)];
        if (round >= nodes.size()) continue;
        hold(nodes[round], source == rank_ ? value : received_from(source));
      }
    }
    const ChunkRef result = held_.at(tree_);
    if (!(result == out(mine_))) ops_.push_back(copy(out(mine_), result));
  }

  /// From whom nothing else comes, the result does: a rank with another list of leaves is found
  /// out.
  void hear_of_all() {
    for (std::int32_t source = 0; source < ranks(); ++source) {
      if (!nodes_[static_cast<std::size_t>(source)].empty()) continue;
      for (std::int32_t i = 1; source == rank_ && i < ranks(); ++i) {
        ops_.push_back(send(out(mine_), wrap(rank_ + i, ranks())));
      }
      if (source != rank_) received_from(source);
    }
  }

  void give_to_all() {
    for (std::int32_t i = 1; i < ranks(); ++i)
      ops_.push_back(send(out(mine_), wrap(rank_ + i, ranks())));
    for (std::int32_t i = 1; i < ranks(); ++i) {
      const std::int32_t peer = wrap(rank_ - i, ranks());
      ops_.push_back(recv_copy(out(peer), peer));
    }
  }

  RankProgram program() {
    return one_channel(std::move(ops_), static_cast<std::uint32_t>(scratches_));
  }

 private:
  std::int32_t ranks() const { return static_cast<std::int32_t>(runs_.size()); }
  const std::vector<LeafNode>& own() const { return nodes_[static_cast<std::size_t>(rank_)]; }

  ChunkRef take(std::int32_t part) {
    if (free_.empty()) free_.push_back(scratches_++);
    const std::int32_t chunk = free_.back();
    free_.pop_back();
    return scratch(chunk, part);
  }
  void give_back(ChunkRef chunk) {
    if (chunk.buffer != Buffer::scratch) return;
    const auto number = static_cast<std::int32_t>(chunk.chunk);
    if (std::ranges::find(sent_, number) == sent_.end()) free_.push_back(number);
  }
  ChunkRef combined(const LeafNode& node, ChunkRef to, ChunkRef left, ChunkRef right) {
    ops_.push_back(copy(to, left));
    ops_.push_back(reduce(to, right, node == tree_));
    give_back(left);
    give_back(right);
    return to;
  }
  /// Of a node within this rank's leaves.
  ChunkRef reduced(const LeafNode& node, std::int32_t part) {
    if (node.is_leaf()) {
      return in((node.begin - runs_[static_cast<std::size_t>(rank_)].begin) * parts_ + part);
    }
    const ChunkRef left = reduced(node.left(), part);
    const ChunkRef right = reduced(node.right(), part);
    return combined(node, take(part), left, right);
  }
  /// Of this rank's part, when the others have theirs. What is sent may be read until the end: its
  /// memory is not used again.
  ChunkRef sent(const LeafNode& node) {
    const ChunkRef own = parts_ == 1 ? reduced(node, 0) : ChunkRef{};
    if (own.buffer == Buffer::scratch) sent_.push_back(static_cast<std::int32_t>(own.chunk));
    for (std::int32_t i = 1; i < ranks(); ++i) {
      const std::int32_t peer = wrap(rank_ + i, ranks());
      ops_.push_back(send(parts_ == 1 ? own : reduced(node, peer), peer));
    }
    return parts_ == 1 ? own : reduced(node, mine_);
  }
  ChunkRef received_from(std::int32_t source) {
    const ChunkRef chunk = take(mine_);
    ops_.push_back(recv_copy(chunk, source));
    return chunk;
  }
  /// And reduces every node whose other child is there.
  void hold(LeafNode node, ChunkRef value) {
    while (!(node == tree_)) {
      const LeafNode parent = parent_within(tree_, node);
      const bool is_left = parent.left() == node;
      const auto other = held_.find(is_left ? parent.right() : parent.left());
      if (other == held_.end()) break;
      const ChunkRef to = parent == tree_ ? out(mine_) : take(mine_);
      value = is_left ? combined(parent, to, value, other->second)
                      : combined(parent, to, other->second, value);
      held_.erase(other);
      node = parent;
    }
    held_[node] = value;
  }

  std::int32_t rank_;
  std::int32_t parts_;
  std::int32_t mine_;
  LeafNode tree_;
  std::vector<LeafNode> runs_;                // of each rank
  std::vector<std::vector<LeafNode>> nodes_;  // that each can reduce
  Channel ops_;
  std::map<LeafNode, ChunkRef> held_;
  std::vector<std::int32_t> sent_;  // scratch chunks, as the next
  std::vector<std::int32_t> free_;
  std::int32_t scratches_ = 0;
};

RankProgram one_shot_leaves(const Spec& spec, std::int32_t rank) {
  Leaves leaves(spec, rank, 1, 0);
  leaves.reduce_all();
  leaves.hear_of_all();
  return leaves.program();
}

RankProgram two_shot_leaves(const Spec& spec, std::int32_t rank) {
  Leaves leaves(spec, rank, spec.ranks, rank);
  leaves.reduce_all();
  leaves.give_to_all();
  return leaves.program();
}

constexpr std::array kRows{
    Row{Algorithm::one_shot, one_shot_leaves, one_by_one, Order::of_ranks},
    Row{Algorithm::two_shot, two_shot_leaves, twice_around, Order::of_ranks, each},
};

}  // namespace

constexpr Family families::all_reduce_leaves{
    Collective::all_reduce_leaves, kRows,
    [](const Ending& end) { return end.is_tree_of_leaves(); }};

}  // namespace gdrx::plan::builders
