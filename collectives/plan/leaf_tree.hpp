// SPDX-License-Identifier: Apache-2.0
// The tree along which leaves are reduced: it follows from their number alone, so that the bits do
// not depend on which rank holds which leaf. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gdrx/plan.hpp"

namespace gdrx::plan {

/// Leaves [begin, end). Of more than one leaf, the left child has the largest power of two that is
/// smaller than their number.
struct LeafNode {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  friend auto operator<=>(const LeafNode&, const LeafNode&) = default;

  bool is_leaf() const noexcept { return end - begin == 1; }
  bool has(const LeafNode& other) const noexcept {
    return begin <= other.begin && other.end <= end;
  }
  LeafNode left() const noexcept { return {begin, middle()}; }
  LeafNode right() const noexcept { return {middle(), end}; }

 private:
  std::int32_t middle() const noexcept {
    std::int32_t half = 1;
    while (2 * half < end - begin) half *= 2;
    return begin + half;
  }
};

inline std::int32_t leaves_of(const Spec& spec, std::int32_t rank) {
  return spec.leaves.empty() ? 1 : spec.leaves[static_cast<std::size_t>(rank)];
}
/// Of all ranks before `end`.
inline std::int32_t leaves_before(const Spec& spec, std::int32_t end) {
  return spec.leaves.empty() ? end
                             : std::accumulate(spec.leaves.begin(), spec.leaves.begin() + end, 0);
}
inline std::int32_t leaves_of(const Spec& spec) { return leaves_before(spec, spec.ranks); }

/// Adds the largest nodes of `tree` that lie within `run`, in order: what its holder can reduce.
inline void add_nodes_within(const LeafNode& tree, const LeafNode& run,
                             std::vector<LeafNode>& nodes) {
  if (tree.begin >= run.end || tree.end <= run.begin) return;
  if (run.has(tree)) {
    nodes.push_back(tree);
    return;
  }
  add_nodes_within(tree.left(), run, nodes);
  add_nodes_within(tree.right(), run, nodes);
}

/// The node whose child `node` is; `node` is another than `tree`, and of it.
inline LeafNode parent_within(const LeafNode& tree, const LeafNode& node) {
  const LeafNode child = tree.left().has(node) ? tree.left() : tree.right();
  return child == node ? tree : parent_within(child, node);
}

}  // namespace gdrx::plan
