// SPDX-License-Identifier: Apache-2.0
// Which NICs a GPU uses: the nearest, evenly shared, the same on every run and every host.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "gdrx/topology.hpp"
#include "topo/model/assign.hpp"

namespace gdrx::topo {
namespace {

using Costs = std::vector<std::vector<Cost>>;

// GPU i of G and NIC j of N stand at the middles of equal parts of one line: the square of their
// distance is convex, so that the smallest sum never crosses: GPU0 gets the first NICs.
std::int64_t apart(std::size_t gpu, std::size_t gpus, std::size_t nic, std::size_t nics) {
  const auto a = static_cast<std::int64_t>((2 * gpu + 1) * nics);
  const auto b = static_cast<std::int64_t>((2 * nic + 1) * gpus);
  return (a - b) * (a - b);
}

std::string_view quality(const Topology& topology, const Path& path) {
  if (topology.flattened()) return "not known: measure it";
  if (path.nccl == NcclClass::p2c) return "good: by NVLink-C2C through the CPU";
  switch (path.near) {
    case PathClass::self:
    case PathClass::nvlink:
    case PathClass::pix:
      return "best: stays inside one PCIe switch";
    case PathClass::pxb:
      return "good: stays below the host bridge";
    case PathClass::phb:
      if (topology.hides_switches()) return "not known, switches are hidden: measure it";
      return "as good as the CPU's host bridge: measure it";
    case PathClass::node:
      if (topology.hides_switches()) return "not known, switches are hidden: measure it";
      return "poor on most CPUs: crosses host bridges";
    case PathClass::sys:
      return "poor: crosses NUMA nodes";
    case PathClass::unknown:
      return "not known: measure it";
  }
  return {};
}

std::string reason(const Topology& topology, const Costs& costs, std::size_t gpu, std::size_t nic,
                   int load, const Path& path) {
  const auto& mine = costs[gpu];
  const Cost best = *std::min_element(mine.begin(), mine.end());
  const auto equals = std::count(mine.begin(), mine.end(), mine[nic]);
  std::string text;
  if (topology.flattened()) {
    text = "flattened by the virtual machine: by rail number";
  } else if (path.near == PathClass::unknown) {
    text = "no place known: by rail number";
  } else if (mine[nic] != best) {
    text = "not the nearest";
  } else if (equals == 1) {
    text = "the nearest";
  } else {
    text = fmt::format("one of {} equally near", equals);
  }
  if (path.near != path.pci && path.near != PathClass::unknown) {
    const bool direct = topology.nics()[nic].dma_node != kNone;
    text += fmt::format(", {} {}", to_string(path.near),
                        direct ? "by Data Direct" : "but for the card's own bridges");
  }
  if (topology.nics()[nic].active == false) text += ", its port is down";
  if (load > 1) text += fmt::format(", shared by {} GPUs", load);
  return text;
}

// A port that is down leads nowhere: its NIC is taken where there is no other.
Cost cost_to(const Topology& topology, std::size_t nic, const Path& path) {
  constexpr int kDown = 16;  // after every class
  Cost total = cost(topology, path);
  if (topology.nics()[nic].active == false) total.rank += kDown;
  return total;
}

bool is_nearest(const Costs& costs, std::size_t gpu, std::size_t nic) {
  return costs[gpu][nic] == *std::min_element(costs[gpu].begin(), costs[gpu].end());
}

// Groups of GPUs and NICs that are joined by being nearest to each other. NICs that are nobody's
// nearest are in none.
struct Group {
  std::vector<std::size_t> gpus;
  std::vector<std::size_t> nics;
};

std::vector<Group> groups_of(const Costs& costs, std::size_t gpus, std::size_t nics) {
  std::vector<Group> groups;
  std::vector<char> seen(gpus, 0);
  for (std::size_t first = 0; first < gpus; ++first) {
    if (seen[first] != 0) continue;
    Group group;
    std::vector<char> has(nics, 0);
    group.gpus.push_back(first);
    seen[first] = 1;
    for (std::size_t i = 0; i < group.gpus.size(); ++i) {
      for (std::size_t nic = 0; nic < nics; ++nic) {
        if (has[nic] != 0 || !is_nearest(costs, group.gpus[i], nic)) continue;
        has[nic] = 1;
        group.nics.push_back(nic);
        for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
          if (seen[gpu] != 0 || !is_nearest(costs, gpu, nic)) continue;
          seen[gpu] = 1;
          group.gpus.push_back(gpu);
        }
      }
    }
    std::sort(group.gpus.begin(), group.gpus.end());
    std::sort(group.nics.begin(), group.nics.end());
    groups.push_back(std::move(group));
  }
  return groups;
}

using Nearest = std::function<bool(std::size_t agent, std::size_t target)>;

// A target for each agent: near ones only, as even as can be, without crossing.
std::vector<std::size_t> deal(std::size_t agents, std::size_t targets, const Nearest& nearest) {
  bool all = true;
  for (std::size_t agent = 0; agent < agents; ++agent) {
    for (std::size_t target = 0; target < targets; ++target) all &= nearest(agent, target);
  }
  std::vector<std::size_t> chosen(agents, 0);
  // The common case has a formula.
  if (all) {
    for (std::size_t agent = 0; agent < agents; ++agent) chosen[agent] = agent * targets / agents;
    return chosen;
  }
  constexpr std::size_t kExact = 64 * 64;  // where the exact method takes milliseconds
  if (agents * targets <= kExact) {
    return balance(agents, targets, [&](std::size_t agent, std::size_t target) {
      return Weight{
          {nearest(agent, target) ? 0 : 1, 0, 0, 0, apart(agent, agents, target, targets)}};
    });
  }
  std::vector<int> load(targets, 0);
  for (std::size_t agent = 0; agent < agents; ++agent) {
    std::size_t best = kNone;
    for (std::size_t target = 0; target < targets; ++target) {
      if (!nearest(agent, target)) continue;
      if (best == kNone || load[target] < load[best]) best = target;
    }
    chosen[agent] = best;
    ++load[best];
  }
  return chosen;
}

// With more NICs than GPUs each NIC goes to one GPU whose nearest it is; else, and for GPUs that
// this leaves without, each GPU takes one NIC.
void share(const Costs& costs, const Group& group, std::vector<std::vector<std::size_t>>& of_gpu) {
  const std::size_t gpus = group.gpus.size();
  const std::size_t nics = group.nics.size();
  const auto nearest = [&](std::size_t gpu, std::size_t nic) {
    return is_nearest(costs, group.gpus[gpu], group.nics[nic]);
  };
  if (nics > gpus) {
    const auto gpu_of =
        deal(nics, gpus, [&](std::size_t nic, std::size_t gpu) { return nearest(gpu, nic); });
    for (std::size_t nic = 0; nic < nics; ++nic) {
      of_gpu[group.gpus[gpu_of[nic]]].push_back(group.nics[nic]);
    }
  }
  const auto nic_of = deal(gpus, nics, nearest);
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    auto& mine = of_gpu[group.gpus[gpu]];
    if (mine.empty()) mine.push_back(group.nics[nic_of[gpu]]);
  }
}

std::vector<std::vector<std::size_t>> choose(const Costs& costs, std::size_t gpus,
                                             std::size_t nics) {
  std::vector<std::vector<std::size_t>> of_gpu(gpus);
  for (const Group& group : groups_of(costs, gpus, nics)) share(costs, group, of_gpu);
  return of_gpu;
}

}  // namespace

std::size_t pxn_proxy(const Topology& topology, std::size_t gpu, std::size_t nic) {
  const auto to_nic = [&](std::size_t from) {
    return path(topology, topology.gpu(from), topology.nic(nic));
  };
  if (to_nic(gpu).nccl <= NcclClass::p2c) return kNone;
  std::size_t best = kNone;
  for (std::size_t peer = 0; peer < topology.gpus().size(); ++peer) {
    if (peer == gpu || topology.nvlinks_between(gpu, peer) == 0) continue;
    if (to_nic(peer).nccl > NcclClass::p2c) continue;
    if (best == kNone || cost(topology, to_nic(peer)) < cost(topology, to_nic(best))) best = peer;
  }
  return best;
}

std::vector<std::size_t> nearest_nics(const Topology& topology, std::size_t gpu) {
  std::vector<Cost> costs;
  for (std::size_t nic = 0; nic < topology.nics().size(); ++nic) {
    costs.push_back(cost_to(topology, nic, path(topology, topology.gpu(gpu), topology.nic(nic))));
  }
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
  return order;
}

RailMap rail_map(const Topology& topology) {
  const std::size_t gpus = topology.gpus().size();
  const std::size_t nics = topology.nics().size();
  RailMap map;
  map.of_gpu.resize(gpus);
  map.load.assign(nics, 0);
  if (nics == 0 || gpus == 0) return map;
  std::vector<std::vector<Path>> paths(gpus);
  Costs costs(gpus);
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    for (std::size_t nic = 0; nic < nics; ++nic) {
      paths[gpu].push_back(path(topology, topology.gpu(gpu), topology.nic(nic)));
      costs[gpu].push_back(cost_to(topology, nic, paths[gpu].back()));
    }
  }
  const auto chosen = choose(costs, gpus, nics);
  for (const auto& list : chosen) {
    for (const std::size_t nic : list) ++map.load[nic];
  }
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    for (const std::size_t nic : chosen[gpu]) {
      const Path& way = paths[gpu][nic];
      map.of_gpu[gpu].push_back({nic, way, reason(topology, costs, gpu, nic, map.load[nic], way),
                                 std::string(quality(topology, way))});
    }
  }
  return map;
}

}  // namespace gdrx::topo
