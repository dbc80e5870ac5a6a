// SPDX-License-Identifier: Apache-2.0
#include "topo/place/cores.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/cpu_list.hpp"

namespace gdrx::topo {
namespace {

using Cores = std::vector<std::vector<int>>;

// "0-7,32-39" is eight cores of two threads as most kernels number them; "0-7" and "0-3,8" are
// cores of one.
Cores guessed_cores(const std::vector<int>& cpus) {
  std::vector<std::vector<int>> ranges;
  for (const int cpu : cpus) {
    if (ranges.empty() || ranges.back().back() + 1 != cpu) ranges.emplace_back();
    ranges.back().push_back(cpu);
  }
  const bool alike = std::all_of(ranges.begin(), ranges.end(), [&](const auto& range) {
    return range.size() == ranges.front().size();
  });
  Cores cores;
  if (ranges.size() != 2 || !alike) {
    for (const int cpu : cpus) cores.push_back({cpu});
    return cores;
  }
  for (std::size_t i = 0; i < ranges[0].size(); ++i) cores.push_back({ranges[0][i], ranges[1][i]});
  return cores;
}

// Distances are by position among all nodes. Nodes without them are as far as their package says.
int distance(const Topology& topology, int from, int to) {
  constexpr int kSamePackage = 12;  // ACPI's usual numbers: 10 is the node itself
  constexpr int kOther = 20;
  if (from == to) return 0;
  const auto& all = topology.numa();
  const auto at = [&](int id) {
    return std::find_if(all.begin(), all.end(),
                        [&](const NumaNode& node) { return node.id == id; });
  };
  const auto a = at(from);
  const auto b = at(to);
  if (a == all.end() || b == all.end()) return kOther;
  const auto place = static_cast<std::size_t>(b - all.begin());
  if (a->distances.size() == all.size()) return a->distances[place];
  return a->package >= 0 && a->package == b->package ? kSamePackage : kOther;
}

class Seating {
 public:
  Seating(const Topology& topology, const std::vector<NodeCores>& nodes)
      : topology_(topology), nodes_(nodes), taken_(nodes.size(), 0) {}

  std::size_t choose(int wanted) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < nodes_.size(); ++i) {
      if (price(i, wanted) < price(best, wanted)) best = i;
    }
    ++taken_[best];
    return best;
  }

 private:
  // A free core first, then near, then empty: a rank that wants none goes where there is most room.
  std::tuple<std::size_t, int, double> price(std::size_t node, int wanted) const {
    const std::size_t rounds = taken_[node] / nodes_[node].cores.size();
    const double filled =
        static_cast<double>(taken_[node] + 1) / static_cast<double>(nodes_[node].cores.size());
    return {rounds, wanted < 0 ? 0 : distance(topology_, wanted, nodes_[node].numa), filled};
  }

  const Topology& topology_;
  const std::vector<NodeCores>& nodes_;
  std::vector<std::size_t> taken_;
};

// Rank `i` of `count` on `cores`.
void share(Seat& seat, const Cores& cores, std::size_t i, std::size_t count) {
  if (count <= cores.size()) {
    const auto from = static_cast<std::ptrdiff_t>(cores.size() * i / count);
    const auto to = static_cast<std::ptrdiff_t>(cores.size() * (i + 1) / count);
    seat.cores.assign(cores.begin() + from, cores.begin() + to);
    return;
  }
  const auto first_of = [&](std::size_t core) {
    return (core * count + cores.size() - 1) / cores.size();
  };
  const std::size_t core = i * cores.size() / count;
  const std::size_t first = first_of(core);
  const std::size_t sharers = first_of(core + 1) - first;
  seat.sharers = static_cast<int>(sharers);
  // Threads are shared out as cores are.
  const std::vector<int>& threads = cores[core];
  const std::size_t from = (i - first) * threads.size() / sharers;
  const std::size_t to = std::max(from + 1, (i - first + 1) * threads.size() / sharers);
  seat.cores = {{threads.begin() + static_cast<std::ptrdiff_t>(from),
                 threads.begin() + static_cast<std::ptrdiff_t>(to)}};
}

using Nodes = std::vector<std::size_t>;  // of nodes

std::vector<Nodes> packages_of(const Topology& topology, const std::vector<NodeCores>& nodes) {
  std::map<int, Nodes> packages;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    packages[topology.package_of(nodes[i].numa)].push_back(i);
  }
  std::vector<Nodes> all;
  for (const auto& [package, of] : packages) all.push_back(of);
  return all;
}

// `ranks` groups of the nodes in `groups`, at most as many as there are: they follow each other.
std::vector<Nodes> divided(const std::vector<Nodes>& groups, std::size_t ranks) {
  std::vector<Nodes> all(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = groups.size() * rank / ranks; i < groups.size() * (rank + 1) / ranks; ++i)
      all[rank].insert(all[rank].end(), groups[i].begin(), groups[i].end());
  }
  return all;
}

// Fewer ranks than nodes, and none with a wish: whole packages, or whole nodes of one package.
std::vector<Seat> whole_nodes(const Topology& topology, const std::vector<NodeCores>& nodes,
                              std::size_t ranks) {
  const std::vector<Nodes> packages = packages_of(topology, nodes);
  std::vector<Nodes> groups;
  if (ranks <= packages.size()) {
    groups = divided(packages, ranks);
  } else {
    for (std::size_t i = 0; i < packages.size(); ++i) {
      const std::size_t here = ranks * (i + 1) / packages.size() - ranks * i / packages.size();
      if (here > packages[i].size()) return {};
      std::vector<Nodes> single;
      for (const std::size_t node : packages[i]) single.push_back({node});
      for (Nodes& group : divided(single, here)) groups.push_back(std::move(group));
    }
  }
  std::vector<Seat> all(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all[rank].near = true;
    all[rank].nodes = groups[rank];
    for (const std::size_t i : groups[rank]) {
      all[rank].cores.insert(all[rank].cores.end(), nodes[i].cores.begin(), nodes[i].cores.end());
    }
  }
  return all;
}

}  // namespace

std::vector<NodeCores> cores_of(const Topology& topology,
                                const std::optional<std::string>& allowed) {
  const std::vector<int> mask = cpus_of_list(allowed.value_or(""));
  const auto may = [&](int cpu) {
    return !allowed || std::binary_search(mask.begin(), mask.end(), cpu);
  };
  std::vector<NodeCores> all;
  std::set<int> seen;  // firmware may list a CPU under several nodes: the first has it
  for (const NumaNode& node : topology.numa()) {
    std::vector<int> own = cpus_of_list(node.cpus);
    std::erase_if(own, [&](int cpu) { return !seen.insert(cpu).second; });
    Cores cores;
    for (const std::string& core : node.cores) cores.push_back(cpus_of_list(core, kMostOfCore));
    if (cores.empty()) cores = guessed_cores(own);
    NodeCores kept{node.id, {}};
    std::set<int> given;  // cores that overlap are a source's mistake: the first has the CPU
    for (auto& core : cores) {
      std::erase_if(core, [&](int cpu) {
        return !may(cpu) || !std::binary_search(own.begin(), own.end(), cpu) ||
               !given.insert(cpu).second;
      });
      if (!core.empty()) kept.cores.push_back(core);
    }
    if (!kept.cores.empty()) all.push_back(std::move(kept));
  }
  return all;
}

std::vector<Seat> seats(const Topology& topology, const std::vector<NodeCores>& nodes,
                        const std::vector<int>& wanted) {
  if (nodes.empty()) return std::vector<Seat>(wanted.size());
  const bool no_wish = std::all_of(wanted.begin(), wanted.end(), [](int node) { return node < 0; });
  if (no_wish && wanted.size() < nodes.size()) {
    auto whole = whole_nodes(topology, nodes, wanted.size());
    if (!whole.empty() || wanted.empty()) return whole;
  }
  Seating seating(topology, nodes);
  std::vector<std::size_t> chosen;
  for (const int node : wanted) chosen.push_back(seating.choose(node));
  // Ranks that do not care sit in their order: neighbours share a node.
  if (no_wish) std::sort(chosen.begin(), chosen.end());
  std::map<std::size_t, std::size_t> count;
  for (const std::size_t node : chosen) ++count[node];
  std::map<std::size_t, std::size_t> next;
  std::vector<Seat> all(wanted.size());
  for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
    const std::size_t node = chosen[rank];
    all[rank].nodes = {node};
    all[rank].near = wanted[rank] < 0 || nodes[node].numa == wanted[rank];
    share(all[rank], nodes[node].cores, next[node]++, count[node]);
  }
  return all;
}

}  // namespace gdrx::topo
