// SPDX-License-Identifier: Apache-2.0
// The double binary tree (Sanders, Speck, Traeff 2009): half of the vector goes up and down one
// tree, half the other, and a rank that is inner in one is a leaf in the other, so that everybody
// sends and receives at full rate.
#include <optional>

#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {
namespace {

struct Node {
  std::optional<std::int32_t> parent;
  std::vector<std::int32_t> children;
};

// In-order numbering: odd positions are leaves, a position's height is its lowest set bit, position
// 0 hangs above everything.
Node node_at(std::int32_t position, std::int32_t n) {
  Node node;
  if (position == 0) {
    const std::int32_t top = power_of_two_below(n - 1);
    if (n > 1) node.children.push_back(top);
    return node;
  }
  const std::int32_t height = position & -position;
  const std::int32_t above = (position ^ height) | (height << 1);
  node.parent = above < n ? above : position ^ height;
  if (height == 1) return node;
  node.children.push_back(position - height / 2);
  for (std::int32_t step = height / 2; step > 0; step /= 2) {
    if (position + step < n) {
      node.children.push_back(position + step);
      break;
    }
  }
  return node;
}

// The second tree has the positions shifted by one (odd n) or mirrored (even n): either turns its
// leaves into the first tree's inner nodes.
std::int32_t swap_tree(std::int32_t value, std::int32_t n, bool to_position) {
  if (n % 2 == 0) return n - 1 - value;
  return wrap(to_position ? value - 1 : value + 1, n);
}

Node node_of(std::int32_t tree, std::int32_t n, std::int32_t rank) {
  if (tree == 0) return node_at(rank, n);
  Node node = node_at(swap_tree(rank, n, true), n);
  if (node.parent) node.parent = swap_tree(*node.parent, n, false);
  for (std::int32_t& child : node.children) child = swap_tree(child, n, false);
  return node;
}

Channel channel_of(std::int32_t tree, std::int32_t n, std::int32_t rank) {
  const Node node = node_of(tree, n, rank);
  Channel ops;
  bool first = true;
  for (const std::int32_t child : node.children) {
    const bool complete = !node.parent && child == node.children.back();
    ops.push_back(recv_reduce(out(tree), first ? in(tree) : out(tree), child, complete));
    first = false;
  }
  if (node.parent) {
    ops.push_back(send(node.children.empty() ? in(tree) : out(tree), *node.parent));
    ops.push_back(recv_copy(out(tree), *node.parent));
  }
  for (const std::int32_t child : node.children) ops.push_back(send(out(tree), child));
  return ops;
}

}  // namespace

RankProgram tree_all_reduce(std::int32_t n, std::int32_t rank) {
  RankProgram program;
  for (std::int32_t tree = 0; tree < 2; ++tree) {
    program.channels.push_back(channel_of(tree, n, rank));
  }
  return program;
}

}  // namespace gdrx::plan::builders
