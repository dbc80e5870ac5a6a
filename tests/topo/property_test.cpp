// SPDX-License-Identifier: Apache-2.0
// What holds on machines that nobody has seen: random trees against a naive second implementation
// of the class rule, and against shuffled enumeration.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "tests/topo/builder.hpp"
#include "topo/model/assign.hpp"

namespace gdrx::topo {
namespace {

using test::HostBuilder;

// Host bridges over a few NUMA nodes (-1 too), bridges below them at random, devices anywhere.
Parts random_parts(unsigned seed) {
  std::mt19937 random(seed);
  const auto upto = [&](int most) { return static_cast<int>(random() % unsigned(most + 1)); };
  HostBuilder host;
  std::vector<std::size_t> places;
  const int roots = 1 + upto(4);
  for (int i = 0; i < roots; ++i) {
    std::vector<std::size_t> mine{host.root(upto(2) - (upto(5) == 0 ? 1 : 0))};
    const int bridges = upto(12);
    for (int j = 0; j < bridges; ++j) {
      const auto above = mine[static_cast<std::size_t>(upto(static_cast<int>(mine.size()) - 1))];
      mine.push_back(host.bridge(above));
      if (upto(3) == 0) host.parts.nodes[mine.back()].link.width = 8;
    }
    places.insert(places.end(), mine.begin(), mine.end());
  }
  const auto place = [&] {
    return places[static_cast<std::size_t>(upto(static_cast<int>(places.size()) - 1))];
  };
  // A builder's bus numbers restart at each root: devices get numbers of their own.
  int number = 0;
  const auto renumber = [&](std::size_t at) {
    PciNode& node = host.parts.nodes[at];
    node.bus =
        BusId{0x100u + static_cast<unsigned>(upto(3)), static_cast<std::uint8_t>(number++), 0, 0};
    node.name = to_string(*node.bus);
  };
  const int gpus = upto(8);
  for (int i = 0; i < gpus; ++i) renumber(host.gpu(place()));
  const int nics = upto(8);
  for (int i = 0; i < nics; ++i) renumber(host.nic(place(), fmt::format("mlx5_{}", i)));
  return host.parts;
}

// The rule again, from its words in nvidia-smi's legend, by sets and climbing.
std::string naive(const Topology& topology, std::size_t a, std::size_t b) {
  const auto& nodes = topology.nodes();
  std::vector<std::size_t> above_a;
  for (auto at = nodes[a].parent; at != kNone; at = nodes[at].parent) above_a.push_back(at);
  const std::set<std::size_t> of_a(above_a.begin(), above_a.end());
  int climbed_b = 0;
  std::size_t meet = nodes[b].parent;
  while (meet != kNone && !of_a.contains(meet)) {
    ++climbed_b;
    meet = nodes[meet].parent;
  }
  if (meet == kNone) {
    const auto numa = [&](std::size_t at) {
      while (nodes[at].numa < 0 && nodes[at].parent != kNone) at = nodes[at].parent;
      return nodes[at].numa;
    };
    return numa(a) >= 0 && numa(a) == numa(b) ? "NODE" : "SYS";
  }
  if (nodes[meet].kind == NodeKind::root) return "PHB";
  int climbed_a = 0;
  while (above_a[static_cast<std::size_t>(climbed_a)] != meet) ++climbed_a;
  return climbed_a > 1 || climbed_b > 1 ? "PXB" : "PIX";
}

RC_GTEST_PROP(TopologyProperty, ClassesAgreeWithANaiveReadingOfTheLegend, (unsigned seed)) {
  const auto topology = Topology::make(random_parts(seed));
  RC_ASSERT(topology.has_value());
  for (std::size_t a = 0; a < topology->devices(); ++a) {
    for (std::size_t b = 0; b < topology->devices(); ++b) {
      const auto x = DeviceId(a);
      const auto y = DeviceId(b);
      const Path way = path(*topology, x, y);
      const std::string expected =
          a == b ? "X" : naive(*topology, topology->node(x), topology->node(y));
      RC_ASSERT(cell(way, true) == expected);
    }
  }
}

RC_GTEST_PROP(TopologyProperty, PathsAreSymmetric, (unsigned seed)) {
  const auto topology = Topology::make(random_parts(seed));
  RC_ASSERT(topology.has_value());
  for (std::size_t a = 0; a < topology->devices(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const Path there = path(*topology, DeviceId(a), DeviceId(b));
      const Path back = path(*topology, DeviceId(b), DeviceId(a));
      RC_ASSERT(there.smi == back.smi);
      RC_ASSERT(there.near == back.near);
      RC_ASSERT(there.nccl == back.nccl);
      RC_ASSERT(there.bridges == back.bridges);
      RC_ASSERT(there.bottleneck == back.bottleneck);
      RC_ASSERT(cost(*topology, there) == cost(*topology, back));
      const auto way = hops(*topology, DeviceId(a), DeviceId(b));
      const auto home = hops(*topology, DeviceId(b), DeviceId(a));
      RC_ASSERT(way.size() == home.size());
      for (std::size_t i = 0; i < way.size(); ++i) {
        RC_ASSERT(way[i].what == home[home.size() - 1 - i].what);
        if (i + 1 < way.size()) RC_ASSERT(way[i].gbytes == home[home.size() - 2 - i].gbytes);
      }
    }
  }
}

Parts shuffled(const Parts& parts, unsigned seed) {
  std::mt19937 random(seed);
  Parts mixed = parts;
  std::vector<std::size_t> order(parts.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::size_t> to(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    to[order[i]] = i;
    mixed.nodes[i] = parts.nodes[order[i]];
  }
  const auto move = [&](std::size_t& at) { at = at == kNone ? kNone : to[at]; };
  for (PciNode& node : mixed.nodes) move(node.parent);
  for (Gpu& gpu : mixed.gpus) move(gpu.node);
  for (Nic& nic : mixed.nics) move(nic.node);
  std::shuffle(mixed.gpus.begin(), mixed.gpus.end(), random);
  std::shuffle(mixed.nics.begin(), mixed.nics.end(), random);
  return mixed;
}

RC_GTEST_PROP(TopologyProperty, TheOrderOfEnumerationChangesNothing,
              (unsigned seed, unsigned shuffle)) {
  const Parts parts = random_parts(seed);
  const auto one = Topology::make(parts);
  const auto two = Topology::make(shuffled(parts, shuffle));
  RC_ASSERT(one.has_value() && two.has_value());
  for (std::size_t a = 0; a < one->devices(); ++a) {
    const auto id = DeviceId(a);
    RC_ASSERT(one->name(id) == two->name(id));
    RC_ASSERT(one->node(id) == two->node(id));
  }
  const RailMap map = rail_map(*one);
  const RailMap other = rail_map(*two);
  RC_ASSERT(map.load == other.load);
  for (std::size_t gpu = 0; gpu < map.of_gpu.size(); ++gpu) {
    RC_ASSERT(map.of_gpu[gpu].size() == other.of_gpu[gpu].size());
    for (std::size_t i = 0; i < map.of_gpu[gpu].size(); ++i) {
      RC_ASSERT(map.of_gpu[gpu][i].nic == other.of_gpu[gpu][i].nic);
      RC_ASSERT(map.of_gpu[gpu][i].reason == other.of_gpu[gpu][i].reason);
    }
  }
  RC_ASSERT(ring_order(*one) == ring_order(*two));
  RC_ASSERT(tree_order(*one, 0) == tree_order(*two, 0));
}

std::vector<std::vector<Cost>> all_costs(const Topology& topology) {
  std::vector<std::vector<Cost>> costs(topology.gpus().size());
  for (std::size_t gpu = 0; gpu < costs.size(); ++gpu) {
    for (std::size_t nic = 0; nic < topology.nics().size(); ++nic) {
      costs[gpu].push_back(cost(topology, path(topology, topology.gpu(gpu), topology.nic(nic))));
    }
  }
  return costs;
}

RC_GTEST_PROP(TopologyProperty, EveryGpuGetsANearestNic, (unsigned seed)) {
  const auto topology = Topology::make(random_parts(seed));
  RC_ASSERT(topology.has_value());
  const auto costs = all_costs(*topology);
  const RailMap map = rail_map(*topology);
  for (std::size_t gpu = 0; gpu < costs.size(); ++gpu) {
    RC_ASSERT(map.of_gpu[gpu].empty() == costs[gpu].empty());
    for (const RailChoice& choice : map.of_gpu[gpu]) {
      RC_ASSERT(costs[gpu][choice.nic] == *std::min_element(costs[gpu].begin(), costs[gpu].end()));
    }
  }
}

// Within a group of GPUs and NICs that see nothing but each other as nearest, loads (GPUs a NIC)
// and shares (NICs a GPU) differ by one at most.
RC_GTEST_PROP(TopologyProperty, EqualNicsAreSharedEvenly, (unsigned seed)) {
  const auto topology = Topology::make(random_parts(seed));
  RC_ASSERT(topology.has_value());
  const auto costs = all_costs(*topology);
  const RailMap map = rail_map(*topology);
  std::map<std::set<std::size_t>, std::vector<std::size_t>> groups;  // nearest NICs: the GPUs
  for (std::size_t gpu = 0; gpu < costs.size(); ++gpu) {
    std::set<std::size_t> nearest;
    for (std::size_t nic = 0; nic < costs[gpu].size(); ++nic) {
      if (costs[gpu][nic] == *std::min_element(costs[gpu].begin(), costs[gpu].end())) {
        nearest.insert(nic);
      }
    }
    groups[nearest].push_back(gpu);
  }
  for (const auto& [nics, gpus] : groups) {
    bool alone = !nics.empty();
    for (const auto& [others, ignored] : groups) {
      if (others == nics) continue;
      for (const std::size_t nic : others) alone = alone && !nics.contains(nic);
    }
    if (!alone) continue;
    std::vector<int> loads;
    for (const std::size_t nic : nics) loads.push_back(map.load[nic]);
    std::vector<std::size_t> shares;
    for (const std::size_t gpu : gpus) shares.push_back(map.of_gpu[gpu].size());
    const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
    const auto [few, many] = std::minmax_element(shares.begin(), shares.end());
    RC_ASSERT(*most - *least <= 1);
    RC_ASSERT(*many - *few <= 1);
  }
}

RC_GTEST_PROP(TopologyProperty, RingsVisitEachGpuOnceAndTreesReachTheirRoot, (unsigned seed)) {
  const auto topology = Topology::make(random_parts(seed));
  RC_ASSERT(topology.has_value());
  const std::size_t gpus = topology->gpus().size();
  const auto ring = ring_order(*topology);
  RC_ASSERT(std::set<std::size_t>(ring.begin(), ring.end()).size() == gpus);
  RC_ASSERT(ring.size() == gpus);
  for (std::size_t root = 0; root < gpus; ++root) {
    const auto parent = tree_order(*topology, root);
    std::vector<int> children(gpus, 0);
    for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
      std::size_t at = gpu;
      for (std::size_t steps = 0; at != root; ++steps) {
        RC_ASSERT(steps < gpus);
        at = parent[at];
        RC_ASSERT(at != kNone);
      }
      if (gpu != root) ++children[parent[gpu]];
    }
    for (const int count : children) RC_ASSERT(count <= 2);
  }
}

// The Hungarian method against every permutation.
RC_GTEST_PROP(Assign, IsTheCheapestOfAllAssignments, (unsigned seed)) {
  std::mt19937 random(seed);
  const std::size_t rows = 1 + random() % 5;
  const std::size_t columns = rows + random() % 2;
  std::vector<Weight> weights(rows * columns);
  for (Weight& weight : weights) {
    for (auto& part : weight.of) part = static_cast<std::int64_t>(random() % 4);
  }
  const auto weight = [&](std::size_t r, std::size_t c) { return weights[r * columns + c]; };
  const auto chosen = assign(rows, columns, weight);
  Weight total;
  for (std::size_t r = 0; r < rows; ++r) total += weight(r, chosen[r]);
  RC_ASSERT(std::set<std::size_t>(chosen.begin(), chosen.end()).size() == rows);
  std::vector<std::size_t> order(columns);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    Weight sum;
    for (std::size_t r = 0; r < rows; ++r) sum += weight(r, order[r]);
    RC_ASSERT(total <= sum);
  } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace gdrx::topo
