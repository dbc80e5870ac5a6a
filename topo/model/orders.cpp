// SPDX-License-Identifier: Apache-2.0
// Orders of GPUs for rings and trees. Plans keep what they know of a host to these two.
#include <algorithm>
#include <numeric>

#include "gdrx/topology.hpp"

namespace gdrx::topo {
namespace {

// One number a pair, so that sums along a ring compare: class first, then bandwidth.
struct Distances {
  std::size_t count;
  std::vector<std::int64_t> of;
  std::int64_t operator()(std::size_t a, std::size_t b) const { return of[a * count + b]; }
};

Distances distances(const Topology& topology) {
  const std::size_t count = topology.gpus().size();
  Distances all{count, std::vector<std::int64_t>(count * count)};
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a == b) continue;
      const Path way = path(topology, topology.gpu(a), topology.gpu(b));
      const Cost price = cost(topology, way);
      // More NVLinks are nearer; a class is worth more than any difference inside it.
      const std::int64_t inside = way.nvlinks > 0 ? -way.nvlinks : price.bridges;
      all.of[a * count + b] = price.rank * std::int64_t{10000} + inside;
    }
  }
  return all;
}

}  // namespace

std::vector<std::size_t> ring_order(const Topology& topology) {
  const Distances far = distances(topology);
  std::vector<std::size_t> ring(far.count);
  // Bus ids grow along the PCI tree, so this is a walk of the tree: the best ring where only PCI
  // counts. NVLink meshes need the exchanges below.
  std::iota(ring.begin(), ring.end(), std::size_t{0});
  if (far.count < 4) return ring;
  // 2-opt: turn a section around while that shortens the ring. Every turn shortens the sum, so this
  // ends; GPU 0 stays first.
  for (bool shorter = true; shorter;) {
    shorter = false;
    for (std::size_t i = 0; i + 2 < far.count; ++i) {
      for (std::size_t j = i + 2; j < far.count; ++j) {
        const std::size_t after = ring[(j + 1) % far.count];
        const std::int64_t now = far(ring[i], ring[i + 1]) + far(ring[j], after);
        const std::int64_t turned = far(ring[i], ring[j]) + far(ring[i + 1], after);
        if (after == ring[i] || turned >= now) continue;
        std::reverse(ring.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                     ring.begin() + static_cast<std::ptrdiff_t>(j) + 1);
        shorter = true;
      }
    }
  }
  return ring;
}

std::vector<std::size_t> tree_order(const Topology& topology, std::size_t root) {
  const Distances far = distances(topology);
  std::vector<std::size_t> parent(far.count, kNone);
  if (root >= far.count) return parent;
  std::vector<int> children(far.count, 0);
  std::vector<int> depth(far.count, -1);
  depth[root] = 0;
  // Prim's tree with at most two children: the shortest link from the tree, the shallower parent
  // among equals, the lower index last.
  for (std::size_t placed = 1; placed < far.count; ++placed) {
    std::size_t from = kNone;
    std::size_t to = kNone;
    for (std::size_t a = 0; a < far.count; ++a) {
      if (depth[a] < 0 || children[a] == 2) continue;
      for (std::size_t b = 0; b < far.count; ++b) {
        if (depth[b] >= 0) continue;
        const bool nearer = from == kNone || far(a, b) < far(from, to) ||
                            (far(a, b) == far(from, to) && depth[a] < depth[from]);
        if (nearer) {
          from = a;
          to = b;
        }
      }
    }
    parent[to] = from;
    depth[to] = depth[from] + 1;
    ++children[from];
  }
  return parent;
}

}  // namespace gdrx::topo
