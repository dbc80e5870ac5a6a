// SPDX-License-Identifier: Apache-2.0
// What a chunk holds, as a reduction expression over contributions. Equal expressions have equal
// ids. a + b and b + a have the same bits, so the operands of one combination are sorted, unless
// sides are kept: a user's operator may not commute.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace gdrx::plan {

using ExpressionId = std::uint32_t;
inline constexpr ExpressionId kUndefined = 0;

enum class Sides : std::uint8_t { sorted, kept };

class Expressions {
 public:
  explicit Expressions(Sides sides = Sides::sorted) : sides_(sides), nodes_(1) {}

  ExpressionId leaf(std::int32_t rank, std::uint32_t chunk) {
    return intern({true, static_cast<std::uint32_t>(rank), chunk, 1});
  }
  ExpressionId combine(ExpressionId a, ExpressionId b) {
    if (a == kUndefined || b == kUndefined) return kUndefined;
    const std::uint64_t leaves = nodes_[a].leaves + nodes_[b].leaves;
    if (sides_ == Sides::kept) return intern({false, a, b, leaves});
    return intern({false, std::min(a, b), std::max(a, b), leaves});
  }
  /// Contributions in it, each as often as it stands there.
  std::uint64_t leaves(ExpressionId id) const { return nodes_[id].leaves; }

  /// From the leaves up: leaf(rank, chunk), combine(a, b). Not of kUndefined.
  template <class Leaf, class Combine>
  auto evaluate(ExpressionId id, const Leaf& leaf, const Combine& combine) const
      -> decltype(leaf(std::int32_t{}, std::uint32_t{})) {
    const Node& node = nodes_[id];
    if (node.is_leaf) return leaf(static_cast<std::int32_t>(node.a), node.b);
    return combine(evaluate(node.a, leaf, combine), evaluate(node.b, leaf, combine));
  }

  /// True if it is every rank's contribution to `chunk`, once each.
  bool is_whole(ExpressionId id, std::int32_t ranks, std::uint32_t chunk) const {
    if (id == kUndefined || nodes_[id].leaves != static_cast<std::uint64_t>(ranks)) return false;
    std::vector<bool> seen(static_cast<std::size_t>(ranks), false);
    std::vector<ExpressionId> todo{id};
    while (!todo.empty()) {
      const Node node = nodes_[todo.back()];
      todo.pop_back();
      if (!node.is_leaf) {
        todo.insert(todo.end(), {node.a, node.b});
      } else if (node.b != chunk || seen[node.a]) {
        return false;
      } else {
        seen[node.a] = true;
      }
    }
    return true;
  }

 private:
  struct Node {
    bool is_leaf = false;
    std::uint32_t a = 0;  // rank, or operand
    std::uint32_t b = 0;  // chunk, or operand
    std::uint64_t leaves = 0;
  };
  ExpressionId intern(const Node& node) {
    const std::uint64_t key = static_cast<std::uint64_t>(node.a) << 32 | node.b;
    auto& table = node.is_leaf ? leaf_ids_ : pair_ids_;
    const auto [entry, fresh] = table.try_emplace(key, static_cast<ExpressionId>(nodes_.size()));
    if (fresh) nodes_.push_back(node);
    return entry->second;
  }

  Sides sides_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint64_t, ExpressionId> leaf_ids_;
  std::unordered_map<std::uint64_t, ExpressionId> pair_ids_;
};

}  // namespace gdrx::plan
