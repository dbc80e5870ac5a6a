// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_tree.hpp"

#include <algorithm>
#include <set>

namespace gdrx {
namespace {

constexpr std::int32_t kNobody = -1;
constexpr std::int32_t kNotReached = -2;

using Links = std::vector<std::vector<std::int32_t>>;

// Some twice.
template <class Body>
void for_each_neighbour(std::int32_t rank, std::int32_t n, const Body& body) {
  for (std::int64_t step = 1; step < n; step *= 2) {
    body(static_cast<std::int32_t>((rank + step) % n));
    body(static_cast<std::int32_t>((rank + n - step) % n));
  }
}

// Those among them, by their places in `ranks`.
Links links_among(std::span<const std::int32_t> ranks, std::int32_t n) {
  std::vector<std::int32_t> place(static_cast<std::size_t>(n), kNobody);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    place[static_cast<std::size_t>(ranks[i])] = static_cast<std::int32_t>(i);
  }
  Links links(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const std::int32_t peer : mesh_neighbours(ranks[i], n)) {
      const std::int32_t to = place[static_cast<std::size_t>(peer)];
      if (to != kNobody) links[i].push_back(to);
    }
  }
  return links;
}

// Breadth first: as few hops as there can be.
std::vector<std::int32_t> parents_of(const Links& links) {
  std::vector<std::int32_t> parent(links.size(), kNotReached);
  std::vector<std::int32_t> reached{0};
  parent[0] = kNobody;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    const std::int32_t at = reached[next];
    for (const std::int32_t to : links[static_cast<std::size_t>(at)]) {
      if (parent[static_cast<std::size_t>(to)] != kNotReached) continue;
      parent[static_cast<std::size_t>(to)] = at;
      reached.push_back(to);
    }
  }
  return reached.size() == links.size() ? parent : std::vector<std::int32_t>();
}

/// Tarjan's search for what holds two parts together: depth first, with the least depth to which
/// what is below a rank has a link.
class Joints {
 public:
  Joints(std::span<const std::int32_t> ranks, std::int32_t n, std::vector<std::int32_t>& room)
      : ranks_(ranks), n_(n), depth_(room) {
    depth_.assign(static_cast<std::size_t>(n), kNobody);
    for (const std::int32_t rank : ranks) depth_[static_cast<std::size_t>(rank)] = kNotReached;
  }

  bool none() { return visit(ranks_[0], 0) >= 0 && reached_ == ranks_.size() && !found_; }

 private:
  std::int32_t visit(std::int32_t at, std::int32_t depth) {
    depth_[static_cast<std::size_t>(at)] = depth;
    ++reached_;
    std::int32_t least = depth;
    int below = 0;
    for_each_neighbour(at, n_, [&](std::int32_t to) {
      const std::int32_t known = depth_[static_cast<std::size_t>(to)];
      if (known == kNotReached) {
        const std::int32_t of_it = visit(to, depth + 1);
        found_ |= depth > 0 ? of_it >= depth : ++below > 1;
        least = std::min(least, of_it);
      } else if (known != kNobody) {
        least = std::min(least, known);
      }
    });
    return least;
  }

  std::span<const std::int32_t> ranks_;
  std::int32_t n_;
  std::vector<std::int32_t>& depth_;  // by rank of the mesh
  std::size_t reached_ = 0;
  bool found_ = false;
};

}  // namespace

std::vector<std::int32_t> mesh_neighbours(std::int32_t rank, std::int32_t n) {
  std::set<std::int32_t> neighbours;
  for_each_neighbour(rank, n, [&](std::int32_t peer) { neighbours.insert(peer); });
  neighbours.erase(rank);
  return {neighbours.begin(), neighbours.end()};
}

std::vector<std::int32_t> MeshTree::children_of(std::int32_t rank) const {
  std::vector<std::int32_t> children;
  for (std::size_t i = 0; i < parent.size(); ++i) {
    if (parent[i] == rank) children.push_back(static_cast<std::int32_t>(i));
  }
  return children;
}

std::optional<MeshTree> mesh_tree(std::span<const std::int32_t> ranks, std::int32_t n) {
  MeshTree tree{parents_of(links_among(ranks, n)), {}};
  if (tree.parent.empty()) return {};
  std::vector<std::vector<std::int32_t>> children(ranks.size());
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    children[static_cast<std::size_t>(tree.parent[i])].push_back(static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> due{0};
  while (!due.empty()) {
    const std::int32_t rank = due.back();
    due.pop_back();
    tree.order.push_back(rank);
    const auto& below = children[static_cast<std::size_t>(rank)];
    due.insert(due.end(), below.rbegin(), below.rend());
  }
  return tree;
}

bool mesh_outlives_any(std::span<const std::int32_t> ranks, std::int32_t n,
                       std::vector<std::int32_t>& room) {
  return Joints(ranks, n, room).none();
}

}  // namespace gdrx
