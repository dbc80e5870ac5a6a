// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/cpu_list.hpp"
#include "topo/place/cores.hpp"
#include "topo/place/placement.hpp"

namespace gdrx::topo {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kMostHosts = 65536;

std::vector<VisibleGpu> all_gpus(const Topology& topology) {
  std::vector<VisibleGpu> all;
  for (std::size_t i = 0; i < topology.gpus().size(); ++i) all.push_back({i, std::to_string(i)});
  return all;
}

// In the order of the ring, so that ranks that follow each other are near. What is on no known
// GPU keeps its place behind them.
std::vector<VisibleGpu> in_ring_order(const Topology& topology,
                                      const std::vector<VisibleGpu>& shown) {
  std::vector<VisibleGpu> order;
  for (const std::size_t gpu : ring_order(topology)) {
    for (const VisibleGpu& one : shown) {
      if (one.gpu == gpu) order.push_back(one);
    }
  }
  for (const VisibleGpu& one : shown) {
    if (one.gpu == kNone) order.push_back(one);
  }
  return order;
}

// The ranks of one host.
class HostPlacer {
 public:
  HostPlacer(const Topology& topology, const PlaceRequest& request,
             const std::vector<NodeCores>& nodes)
      : topology_(topology), nodes_(nodes), map_(rail_map(topology)) {
    gpus_ = in_ring_order(topology, request.gpus.value_or(all_gpus(topology)));
  }

  std::vector<RankPlace> place(std::size_t ranks) const {
    std::vector<int> wanted;
    for (std::size_t local = 0; local < ranks; ++local) {
      const std::size_t gpu = gpu_of(local);
      wanted.push_back(gpu == kNone ? -1 : topology_.numa_near(topology_.gpus()[gpu].node));
    }
    const std::vector<Seat> seated = seats(topology_, nodes_, wanted);
    std::vector<RankPlace> all;
    for (std::size_t local = 0; local < ranks; ++local) {
      RankPlace one;
      one.local = static_cast<int>(local);
      one.gpu = gpu_of(local);
      if (!gpus_.empty()) one.token = gpus_[local % gpus_.size()].token;
      take_cores(one, seated[local]);
      one.nics = nics_of(one);
      one.reason =
          gpu_reason(one, ranks) + nic_reason(one) + core_reason(one, seated[local], wanted[local]);
      all.push_back(std::move(one));
    }
    return all;
  }

  const std::vector<VisibleGpu>& gpus() const { return gpus_; }

 private:
  // As programs count: device = local rank modulo the number of devices.
  std::size_t gpu_of(std::size_t local) const {
    return gpus_.empty() ? kNone : gpus_[local % gpus_.size()].gpu;
  }

  void take_cores(RankPlace& rank, const Seat& seat) const {
    for (const std::size_t node : seat.nodes) rank.numa.push_back(nodes_[node].numa);
    rank.cores = seat.cores.size();
    for (const auto& core : seat.cores) {
      rank.cpus.insert(rank.cpus.end(), core.begin(), core.end());
    }
    std::sort(rank.cpus.begin(), rank.cpus.end());
    if (seat.cores.empty() || seat.sharers > 1) return;
    // A core of its own, or the other thread of the only one.
    if (seat.cores.size() > 1)
      rank.progress_cpu = seat.cores.back().front();
    else if (rank.cpus.size() > 1)
      rank.progress_cpu = rank.cpus.back();
  }

  std::vector<RailChoice> nics_of(const RankPlace& rank) const {
    if (rank.gpu != kNone) return map_.of_gpu[rank.gpu];
    std::vector<std::size_t> near;
    std::vector<std::size_t> up;
    for (std::size_t nic = 0; nic < topology_.nics().size(); ++nic) {
      const Nic& one = topology_.nics()[nic];
      if (one.active == false || one.is_virtual) continue;
      up.push_back(nic);
      const int numa = one.node == kNone ? -1 : topology_.numa_near(one.node);
      if (std::find(rank.numa.begin(), rank.numa.end(), numa) != rank.numa.end())
        near.push_back(nic);
    }
    const auto& from = near.empty() ? up : near;
    if (from.empty()) return {};
    RailChoice choice;
    choice.nic = from[static_cast<std::size_t>(rank.local) % from.size()];
    choice.reason = near.empty() ? "none is on its NUMA node" : "on its NUMA node";
    if (from.size() > 1) choice.reason += fmt::format(", one of {} in turn", from.size());
    return {choice};
  }

  std::string gpu_reason(const RankPlace& rank, std::size_t ranks) const {
    if (gpus_.empty()) return "no GPU";
    const std::size_t count = gpus_.size();
    const auto local = static_cast<std::size_t>(rank.local);
    const std::size_t sharers = ranks / count + (local % count < ranks % count ? 1 : 0);
    std::string text = rank.gpu == kNone ? rank.token + ", of a GPU that is not known"
                                         : topology_.gpus()[rank.gpu].name;
    if (rank.gpu != kNone && rank.token.starts_with("MIG-")) text += " by " + rank.token;
    if (sharers > 1) text += fmt::format(" shared by {} ranks", sharers);
    return text;
  }

  std::string nic_reason(const RankPlace& rank) const {
    if (topology_.nics().empty()) return "";
    if (rank.nics.empty()) return "; no NIC";
    std::string text;
    for (const RailChoice& choice : rank.nics) {
      text += fmt::format("; {}{} {}", topology_.nics()[choice.nic].name,
                          rank.gpu == kNone ? "" : fmt::format(" {}", cell(choice.path, false)),
                          choice.reason);
    }
    return text;
  }

  std::string core_reason(const RankPlace& rank, const Seat& seat, int wanted) const {
    if (seat.cores.empty()) return "; no cores known";
    std::string text =
        fmt::format("; {} of NUMA node{} {}",
                    seat.cores.size() == 1 ? "1 core" : fmt::format("{} cores", rank.cores),
                    rank.numa.size() == 1 ? "" : "s", fmt::join(rank.numa, " and "));
    if (seat.sharers > 1) text += fmt::format(", shared by {} ranks", seat.sharers);
    if (rank.gpu == kNone) return text;
    if (wanted < 0) return text + ", as the GPU's is not known";
    if (seat.near) return text + ", the GPU's";
    const bool hidden = std::none_of(nodes_.begin(), nodes_.end(),
                                     [&](const NodeCores& node) { return node.numa == wanted; });
    return text + fmt::format(", as the GPU's node {} has {}", wanted,
                              hidden ? "none that may be used" : "none left");
  }

  const Topology& topology_;
  const std::vector<NodeCores>& nodes_;
  RailMap map_;
  std::vector<VisibleGpu> gpus_;
};

// What the whole job has to know.
void add_notes(Placement& placement, const Topology& topology, const PlaceRequest& request,
               const std::vector<NodeCores>& nodes, std::size_t gpus) {
  const auto most = [&](int host) {
    return static_cast<std::size_t>(
        std::count_if(placement.ranks.begin(), placement.ranks.end(),
                      [&](const RankPlace& rank) { return rank.host == host; }));
  };
  const std::size_t ranks = most(0);  // the first host has as many as any
  auto& notes = placement.notes;
  if (gpus > 0 && ranks > gpus) {
    notes.push_back(fmt::format("{} ranks share {} GPU{}", ranks, gpus, gpus == 1 ? "" : "s"));
  }
  if (gpus > ranks) notes.push_back(fmt::format("{} of {} GPUs have no rank", gpus - ranks, gpus));
  if (request.gpus && gpus < topology.gpus().size()) {
    notes.push_back(fmt::format("{} of {} GPUs are hidden from the job",
                                topology.gpus().size() - gpus, topology.gpus().size()));
  }
  std::size_t cores = 0;
  std::size_t all = 0;
  for (const NodeCores& node : nodes) cores += node.cores.size();
  for (const NodeCores& node : cores_of(topology, std::nullopt)) all += node.cores.size();
  if (cores > 0 && ranks > cores) {
    notes.push_back(fmt::format("{} ranks share {} core{}", ranks, cores, cores == 1 ? "" : "s"));
  }
  std::set<int> used;
  for (const RankPlace& rank : placement.ranks) {
    if (rank.host == 0) used.insert(rank.cpus.begin(), rank.cpus.end());
  }
  std::size_t idle = 0;
  for (const NodeCores& node : nodes) {
    for (const auto& core : node.cores) {
      idle += std::none_of(core.begin(), core.end(), [&](int cpu) { return used.contains(cpu); });
    }
  }
  placement.crowded = ranks > cores && cores > 0;
  if (idle > 0) notes.push_back(fmt::format("{} of {} cores have no rank", idle, cores));
  if (cores < all) notes.push_back(fmt::format("{} of {} cores may not be used", all - cores, all));
  if (all == 0) notes.push_back("the source tells no CPUs: ranks are bound to none");
  const bool told =
      std::all_of(topology.numa().begin(), topology.numa().end(),
                  [](const auto& node) { return node.cpus.empty() || !node.cores.empty(); });
  if (all > 0 && !told) {
    notes.push_back(
        "which CPUs are one core is not told: two ranges of one length are taken for it");
  }
  if (topology.flattened()) {
    notes.push_back("flattened by a virtual machine: GPUs, NICs and cores are matched by number");
  }
}

}  // namespace

Result<Placement> place(const Topology& topology, const PlaceRequest& request) {
  if (request.hosts < 1 || request.hosts > kMostHosts) {
    return fail(Errc::invalid_argument,
                fmt::format("{} hosts: 1 to {}", request.hosts, kMostHosts));
  }
  const std::vector<NodeCores> nodes = cores_of(topology, request.cpus);
  if (nodes.empty() && !cores_of(topology, std::nullopt).empty()) {
    return fail(Errc::invalid_argument,
                fmt::format("none of the CPUs {} is of this host", request.cpus.value_or("")));
  }
  const HostPlacer placer(topology, request, nodes);
  std::size_t each = placer.gpus().size();
  if (each == 0) {
    for (const NodeCores& node : nodes) each += node.cores.size();
  }
  const auto hosts = static_cast<std::size_t>(request.hosts);
  const std::size_t ranks = request.ranks == 0 ? std::max<std::size_t>(1, each) * hosts
                                               : static_cast<std::size_t>(request.ranks);
  if (request.ranks < 0 || ranks > kMostRanks) {
    return fail(
        Errc::invalid_argument,
        fmt::format("{} ranks: 1 to {}",
                    request.ranks == 0 ? std::to_string(ranks) : std::to_string(request.ranks),
                    kMostRanks));
  }
  Placement placement;
  placement.hosts = request.hosts;
  std::map<std::size_t, std::vector<RankPlace>> of_count;
  for (std::size_t host = 0; host < hosts; ++host) {
    const std::size_t count = ranks / hosts + (host < ranks % hosts ? 1 : 0);
    auto& local = of_count[count];
    if (local.empty()) local = placer.place(count);
    for (RankPlace rank : local) {
      rank.rank = static_cast<int>(placement.ranks.size());
      rank.host = static_cast<int>(host);
      placement.ranks.push_back(std::move(rank));
    }
  }
  const auto& gpus = placer.gpus();
  const auto shown = request.gpus.value_or(all_gpus(topology));
  placement.reorders_gpus =
      !std::equal(gpus.begin(), gpus.end(), shown.begin(), shown.end(),
                  [](const VisibleGpu& a, const VisibleGpu& b) { return a.token == b.token; });
  for (const VisibleGpu& gpu : gpus) placement.gpu_tokens.push_back(gpu.token);
  add_notes(placement, topology, request, nodes, gpus.size());
  return placement;
}

}  // namespace gdrx::topo
