// SPDX-License-Identifier: Apache-2.0
#include "topo/place/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace gdrx::topo {
namespace {

// Between sockets no source tells rates. A socket's link, one way, as published for two links of
// UPI or xGMI; and what one GPU reaches of a NIC across it, as people measured with A100 on EPYC.
constexpr double kSocketLink = 40;
constexpr double kPeerAcrossSockets = 6;
constexpr double kNvlink = 25;  // of one link, one way: from Volta to Hopper

struct Use {
  double capacity = 0;  // GB/s, 0 unknown
  int flows = 0;
};
struct Hop {
  std::string name;  // a resource
  double capacity = 0;
  const char* assumed = nullptr;  // what of it no source tells
};
constexpr const char* kSocketAssumed = "40 GB/s a way between two sockets";
constexpr const char* kPeerAssumed = "6 GB/s from a GPU to a NIC of another socket, and back";
constexpr const char* kNvlinkAssumed = "25 GB/s a way of an NVLink";

class Flows {
 public:
  explicit Flows(const Topology& topology) : topology_(topology) {}

  void add(std::vector<Hop> hops) {
    for (const Hop& hop : hops) {
      Use& use = uses_[hop.name];
      use.capacity = hop.capacity;
      ++use.flows;
      if (hop.assumed != nullptr) assumed_.insert(hop.assumed);
    }
    all_.push_back(std::move(hops));
  }

  Rate slowest() const {
    Rate rate;
    for (const auto& hops : all_) {
      for (const Hop& hop : hops) {
        const std::string& name = hop.name;
        const Use& use = uses_.at(name);
        if (use.capacity <= 0) continue;
        const double share = use.capacity / use.flows;
        if (rate.gbytes > 0 && share >= rate.gbytes) continue;
        rate.gbytes = share;
        rate.limit = use.flows > 1 ? fmt::format("{}, {} flows", name, use.flows) : name;
      }
    }
    return rate;
  }

  /// Over PCIe from a node to another, kNone being the memory of `numa_a` or `numa_b`.
  std::vector<Hop> pcie(int host, std::size_t a, int numa_a, std::size_t b, int numa_b) const {
    const std::vector<std::size_t> up = chain(a);
    const std::vector<std::size_t> down = chain(b);
    std::vector<Hop> hops;
    const auto below = [&](const std::vector<std::size_t>& one,
                           const std::vector<std::size_t>& other, std::string_view way) {
      for (const std::size_t node : one) {
        if (std::find(other.begin(), other.end(), node) != other.end()) break;
        const auto rate = gbytes(topology_.nodes()[node].link);
        hops.push_back({fmt::format("{} {} of host {}", topology_.nodes()[node].name, way, host),
                        rate.value_or(0)});
      }
    };
    below(up, down, "up");
    below(down, up, "down");
    const int from = a == kNone ? numa_a : topology_.numa_near(a);
    const int to = b == kNone ? numa_b : topology_.numa_near(b);
    const bool apart = up.empty() || down.empty() || up.back() != down.back();
    if (apart && crosses(from, to)) {
      hops.push_back({fmt::format("socket {} to {} of host {}", package(from), package(to), host),
                      kSocketLink, kSocketAssumed});
    }
    return hops;
  }

  const std::set<std::string>& assumed() const { return assumed_; }

  bool crosses(int from, int to) const {
    return from >= 0 && to >= 0 && package(from) != package(to);
  }

 private:
  // Where packages are not told, as in NCCL's files, each NUMA node is one.
  int package(int numa) const {
    const int known = topology_.package_of(numa);
    return known < 0 ? numa : known;
  }

  // From the node to its root, which is last.
  std::vector<std::size_t> chain(std::size_t node) const {
    std::vector<std::size_t> all;
    for (; node != kNone; node = topology_.nodes()[node].parent) all.push_back(node);
    return all;
  }

  const Topology& topology_;
  std::map<std::string, Use> uses_;
  std::set<std::string> assumed_;
  std::vector<std::vector<Hop>> all_;
};

std::size_t node_of(const Topology& topology, const RankPlace& rank) {
  return rank.gpu == kNone ? kNone : topology.gpus()[rank.gpu].node;
}
int numa_of(const RankPlace& rank) { return rank.numa.empty() ? -1 : rank.numa.front(); }

// From a rank's GPU or memory by the first of its NICs, or back.
std::vector<Hop> by_nic(const Topology& topology, const Flows& flows, const RankPlace& rank,
                        bool leaves) {
  if (rank.nics.empty()) return {};
  const Nic& nic = topology.nics()[rank.nics.front().nic];
  const std::size_t at = nic.dma_node == kNone ? nic.node : nic.dma_node;
  const std::size_t gpu = node_of(topology, rank);
  auto hops = leaves ? flows.pcie(rank.host, gpu, numa_of(rank), at, -1)
                     : flows.pcie(rank.host, at, -1, gpu, numa_of(rank));
  const std::string_view way = leaves ? "out" : "in";
  hops.push_back({fmt::format("{} {} of host {}", nic.name, way, rank.host), nic.gigabits / 8});
  const bool direct =
      gpu != kNone &&
      path(topology, topology.gpu(rank.gpu), topology.nic(rank.nics.front().nic)).nccl ==
          NcclClass::p2c;
  const bool apart =
      gpu != kNone && at != kNone && flows.crosses(topology.numa_near(gpu), topology.numa_near(at));
  if (apart && !direct) {
    hops.push_back({fmt::format("rank {} {} by a NIC of another socket", rank.rank, way),
                    kPeerAcrossSockets, kPeerAssumed});
  }
  return hops;
}

std::vector<Hop> to_next(const Topology& topology, const Flows& flows, const RankPlace& from,
                         const RankPlace& to) {
  if (from.host != to.host) {
    auto hops = by_nic(topology, flows, from, true);
    const auto rest = by_nic(topology, flows, to, false);
    hops.insert(hops.end(), rest.begin(), rest.end());
    return hops;
  }
  const bool gpus = from.gpu != kNone && to.gpu != kNone;
  if (gpus && from.gpu == to.gpu) return {};
  const int links = gpus ? topology.nvlinks_between(from.gpu, to.gpu) : 0;
  if (links == 0) {
    return flows.pcie(from.host, node_of(topology, from), numa_of(from), node_of(topology, to),
                      numa_of(to));
  }
  double told = 0;
  for (const NvLink& link : topology.nvlinks()) {
    const bool between = link.peer == to.gpu || link.peer == kNone;
    if (link.gpu == from.gpu && between) told = std::max(told, link.gbytes);
  }
  return {{fmt::format("links of {} of host {}", topology.gpus()[from.gpu].name, from.host),
           links * (told > 0 ? told : kNvlink), told > 0 ? nullptr : kNvlinkAssumed}};
}

}  // namespace

Forecast forecast(const Topology& topology, const std::vector<RankPlace>& ranks) {
  Flows ring(topology);
  Flows nic(topology);
  Flows host(topology);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankPlace& rank = ranks[i];
    if (ranks.size() > 1) ring.add(to_next(topology, ring, rank, ranks[(i + 1) % ranks.size()]));
    nic.add(by_nic(topology, nic, rank, true));
    if (rank.gpu == kNone || numa_of(rank) < 0) continue;
    host.add(host.pcie(rank.host, node_of(topology, rank), -1, kNone, numa_of(rank)));
  }
  std::set<std::string> assumed = ring.assumed();
  for (const Flows* flows : {&nic, &host}) {
    assumed.insert(flows->assumed().begin(), flows->assumed().end());
  }
  return {ring.slowest(), nic.slowest(), host.slowest(), assumed};
}

std::vector<RankPlace> shuffled(const Placement& placement, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto shuffle =
      [&](std::vector<std::size_t>& order) {  // the library's differ between themselves
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
      };
  std::vector<std::size_t> order(placement.ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  shuffle(order);
  std::vector<RankPlace> ranks;
  for (const std::size_t from : order) ranks.push_back(placement.ranks[from]);
  std::map<int, std::vector<std::size_t>> of_host;
  for (std::size_t i = 0; i < ranks.size(); ++i) of_host[ranks[i].host].push_back(i);
  for (const auto& [host, here] : of_host) {
    for (const bool nics : {true, false}) {
      std::vector<std::size_t> of = here;
      shuffle(of);
      std::vector<RankPlace> before;
      for (const std::size_t i : of) before.push_back(ranks[i]);
      for (std::size_t i = 0; i < here.size(); ++i) {
        RankPlace& rank = ranks[here[i]];
        if (nics) {
          rank.nics = before[i].nics;
        } else {
          rank.numa = before[i].numa;
          rank.cpus = before[i].cpus;
        }
      }
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].rank = static_cast<int>(i);
  return ranks;
}

}  // namespace gdrx::topo
