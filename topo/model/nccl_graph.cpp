// SPDX-License-Identifier: Apache-2.0
#include "topo/model/nccl_graph.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "topo/model/nccl_speed.hpp"
#include "topo/place/placement.hpp"

namespace gdrx::topo {
namespace {

using Order = std::vector<std::size_t>;

Order starting_at(const Order& ring, std::size_t place) {
  Order order(ring.begin() + static_cast<std::ptrdiff_t>(place), ring.end());
  order.insert(order.end(), ring.begin(), ring.begin() + static_cast<std::ptrdiff_t>(place));
  return order;
}

// A channel enters by the first GPU and leaves by the last one: neither should be far from the NIC.
Order around_nic(const NicPaths& paths, const Order& ring, std::size_t nic) {
  std::size_t best = 0;
  std::tuple<std::size_t, std::size_t> least{kNcclTypes.size(), 0};
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const std::size_t first = paths.from_nic(nic, ring[i]);
    const std::size_t last = paths.to_nic(ring[(i + ring.size() - 1) % ring.size()], nic);
    const std::tuple<std::size_t, std::size_t> both{std::max(first, last), first};
    if (both >= least) continue;
    least = both;
    best = i;
  }
  return starting_at(ring, best);
}

// What each GPU sends to the next one, at least. With NVSwitches all that a GPU has.
double between_gpus(const Topology& topology, const Order& ring, bool closed) {
  double least = std::numeric_limits<double>::infinity();
  const std::size_t hops = ring.size() < 2 ? 0 : closed ? ring.size() : ring.size() - 1;
  for (std::size_t i = 0; i < hops; ++i) {
    const std::size_t to = ring[(i + 1) % ring.size()];
    least = std::min(least, nccl_rate(topology, topology.gpu(ring[i]), topology.gpu(to)));
  }
  constexpr double kAlone = 5000;  // a GPU to itself
  return std::min(least, kAlone);
}

std::size_t types_between(const Topology& topology, const Order& ring, bool closed) {
  std::size_t type = 0;
  const std::size_t hops = ring.size() < 2 ? 0 : closed ? ring.size() : ring.size() - 1;
  for (std::size_t i = 0; i < hops; ++i) {
    const std::size_t to = ring[(i + 1) % ring.size()];
    type = std::max(type, nccl_type(topology, topology.gpu(ring[i]), topology.gpu(to)));
  }
  return type;
}

void set_types(const Topology& topology, const NicPaths& paths, NcclGraph& graph) {
  std::size_t intra = 0;
  std::size_t inter = type_place("PIX");
  const NcclChannel* before = nullptr;
  for (const NcclChannel& channel : graph.channels) {
    if (channel.gpus.empty()) continue;
    const bool closed = channel.in == kNone && graph.id == kNcclRing;
    const bool again = before != nullptr && before->gpus == channel.gpus;
    if (!again) intra = std::max(intra, types_between(topology, channel.gpus, closed));
    before = &channel;
    if (channel.in == kNone) continue;
    const std::size_t last = graph.id == kNcclRing ? channel.gpus.back() : channel.gpus.front();
    inter = std::max(
        {inter, paths.from_nic(channel.in, channel.gpus.front()), paths.to_nic(last, channel.out)});
  }
  graph.type_intra = kNcclTypes[intra];
  graph.type_inter = kNcclTypes[inter];
}

NcclGraph our_ring(const Topology& topology, const NicPaths& paths, const Order& nics) {
  const Order ring = ring_order(topology);
  std::vector<double> lanes;
  std::vector<NcclChannel> one_each;
  for (const std::size_t nic : nics) {
    NcclChannel channel{nic, nic, around_nic(paths, ring, nic)};
    lanes.push_back(paths.rate(channel.gpus.front(), nic));
    one_each.push_back(std::move(channel));
  }
  if (nics.empty()) one_each.push_back({kNone, kNone, ring});
  NcclGraph graph;
  const ChannelSpeed speed =
      channel_speed(least_sm(topology), lanes, between_gpus(topology, ring, nics.empty()), true);
  graph.intra = graph.inter = speed.gbytes;
  for (std::size_t i = 0; i < speed.channels; ++i) {
    graph.channels.push_back(one_each[i % one_each.size()]);
  }
  set_types(topology, paths, graph);
  return graph;
}

// All pairs of GPUs are joined by as many NVLinks: none, or by switches.
bool all_alike(const Topology& topology) {
  const std::size_t count = topology.gpus().size();
  const int links = count < 2 ? 0 : topology.nvlinks_between(0, 1);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a != b && topology.nvlinks_between(a, b) != links) return false;
    }
  }
  return true;
}

// The channels between hosts, as the search goes through them: a channel may not take a path that
// is farther than `level_` to the NIC or back.
class NicChannels {
 public:
  NicChannels(const Topology& topology, const NicPaths& paths, const Order& nets)
      : count_(topology.gpus().size()), paths_(paths) {
    for (std::size_t gpu = 0; gpu < count_; ++gpu) local_.push_back(local_nets(gpu, nets));
    for (std::size_t turn = 0; turn < nets.size(); ++turn) {
      for (std::size_t gpu = 0; gpu < count_; ++gpu) add_net(gpu, turn);
    }
    for (const auto& start : starts_) level_ = std::max(level_, least_level(start.first));
  }

  std::vector<NcclChannel> channels(bool order_known) const {
    std::vector<NcclChannel> all;
    Order order(count_);
    std::iota(order.begin(), order.end(), std::size_t{0});  // of the first, bus ids are tried first
    for (const auto& [nic, gpu] : starts_) {
      // What served the last NIC stays, if it serves this one.
      if (!fits(order, nic)) order = down_from(gpu, nic);
      all.push_back({nic, nic, order_known ? order : Order{gpu}});
    }
    return all;
  }
  std::vector<double> lanes() const {
    std::vector<double> all;
    for (const auto& [nic, gpu] : starts_) all.push_back(paths_.rate(gpu, nic));
    return all;
  }

 private:
  // NICs of the highest rate, of those the nearest.
  Order local_nets(std::size_t gpu, const Order& nets) const {
    double rate = 0;
    std::size_t near = kNcclTypes.size();
    Order local;
    for (const std::size_t nic : nets) {
      const double own = paths_.rate(gpu, nic);
      const std::size_t type = paths_.from_nic(nic, gpu);
      if (own < rate || (own <= rate && type > near)) continue;
      if (own > rate || type < near) local.clear();
      rate = own;
      near = type;
      local.push_back(nic);
    }
    return local;
  }

  // GPUs that have the same first NIC divide their NICs, and each takes its own in turns. Where
  // they are a power of two, it begins by the mirrored bits of its number.
  void add_net(std::size_t gpu, std::size_t turn) {
    const Order& local = local_[gpu];
    const auto sharers = static_cast<std::size_t>(
        std::count_if(local_.begin(), local_.end(),
                      [&](const Order& other) { return other.front() == local.front(); }));
    std::size_t at = gpu % sharers;
    if ((local.size() & (local.size() - 1)) == 0) {
      std::size_t mirrored = 0;
      for (std::size_t bit = 1; bit < local.size(); bit *= 2) {
        mirrored = 2 * mirrored + ((at & bit) != 0 ? 1 : 0);
      }
      at = mirrored;
    }
    const std::size_t own = (local.size() + sharers - 1) / sharers;
    const std::size_t nic = local[(at + turn % own) % local.size()];
    const bool there = std::any_of(starts_.begin(), starts_.end(),
                                   [&](const auto& other) { return other.first == nic; });
    if (!there) starts_.emplace_back(nic, gpu);
  }

  bool fits(const Order& order, std::size_t nic) const {
    return paths_.from_nic(nic, order.front()) <= level_ &&
           paths_.to_nic(order.back(), nic) <= level_;
  }

  // The first GPU, and another one as the last.
  std::size_t least_level(std::size_t nic) const {
    std::size_t least = kNcclTypes.size();
    for (std::size_t first = 0; first < count_; ++first) {
      for (std::size_t last = 0; last < count_; ++last) {
        if (first == last && count_ > 1) continue;
        least = std::min(least, std::max(paths_.from_nic(nic, first), paths_.to_nic(last, nic)));
      }
    }
    return least;
  }

  // Down from the NIC's GPU, as all others are as near; at the end the one that can go back.
  Order down_from(std::size_t gpu, std::size_t nic) const {
    Order order{gpu};
    for (std::size_t i = 1; i < count_; ++i) order.push_back((gpu + count_ - i) % count_);
    for (std::size_t i = count_; i-- > 1;) {
      if (paths_.to_nic(order[i], nic) > level_) continue;
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(i),
                  order.begin() + static_cast<std::ptrdiff_t>(i) + 1, order.end());
      break;
    }
    return order;
  }

  std::size_t count_;
  const NicPaths& paths_;
  std::vector<Order> local_;                                 // of each GPU
  std::vector<std::pair<std::size_t, std::size_t>> starts_;  // a NIC and its GPU
  std::size_t level_ = 0;
};

void between_hosts(const Topology& topology, const NicPaths& paths, const Order& nets,
                   ExpectedGraph& expected) {
  const std::size_t count = topology.gpus().size();
  const NicChannels search(topology, paths, nets);
  const bool known = count <= 2 || (all_alike(topology) && nccl_nvlink_rate(topology, 0) > 0);
  const std::vector<NcclChannel> one_each = search.channels(known);
  if (!known) {
    expected.notes.emplace_back(
        "the order of GPUs behind the first one of a channel, as their links are not all alike");
  }
  Order listed(count);
  std::iota(listed.begin(), listed.end(), std::size_t{0});
  const ChannelSpeed speed = channel_speed(least_sm(topology), search.lanes(),
                                           between_gpus(topology, listed, false), false);
  expected.ring.intra = expected.ring.inter = speed.gbytes;
  for (std::size_t i = 0; i < speed.channels; ++i) {
    expected.ring.channels.push_back(one_each[i % one_each.size()]);
  }
}

Result<void> is_for_nccl(const Topology& topology) {
  if (topology.gpus().empty()) return fail(Errc::invalid_argument, "no GPU: NCCL has no graph");
  if (is_amd(topology))
    return fail(Errc::unsupported, "NCCL is for NVIDIA's GPUs, these are AMD's");
  constexpr std::size_t kMostNodes = 576;  // of a kind, in NCCL's tables
  if (topology.gpus().size() > kMostNodes || topology.nics().size() > kMostNodes) {
    return fail(Errc::unsupported, "more GPUs or NICs than NCCL takes in a host");
  }
  return {};
}

}  // namespace

std::vector<std::size_t> nccl_nets(const Topology& topology) {
  const RailMap map = rail_map(topology);
  Order nets;
  for (std::size_t nic = 0; nic < topology.nics().size(); ++nic) {
    const Nic& one = topology.nics()[nic];
    if (map.load[nic] > 0 && !one.is_virtual && one.active != false) nets.push_back(nic);
  }
  const auto place = [&](std::size_t nic) {
    const Nic& one = topology.nics()[nic];
    const auto bus = one.node == kNone ? std::nullopt : topology.nodes()[one.node].bus;
    return std::tuple(!bus, bus.value_or(BusId{}), one.port, nic);  // without a bus id: last
  };
  std::sort(nets.begin(), nets.end(),
            [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  return nets;
}

bool may_span_hosts_by_nvlink(const Topology& topology) {
  const auto& links = topology.nvlinks();
  const bool switched = std::any_of(links.begin(), links.end(),
                                    [](const NvLink& link) { return link.peer == kNone; });
  const bool c2c = std::any_of(topology.gpus().begin(), topology.gpus().end(),
                               [](const Gpu& gpu) { return gpu.c2c_links > 0; });
  const bool named =
      std::any_of(topology.gpus().begin(), topology.gpus().end(), [](const Gpu& gpu) {
        return gpu.model.find("GB200") != gpu.model.npos ||
               gpu.model.find("GB300") != gpu.model.npos;
      });
  return named || (c2c && (switched || !topology.nvlink_known()));
}

Result<std::vector<NcclGraph>> our_nccl_graphs(const Topology& topology, bool alone) {
  GDRX_TRY(is_for_nccl(topology));
  const NicPaths paths(topology);
  NcclGraph ring = our_ring(topology, paths, alone ? Order() : nccl_nets(topology));
  // A chain of the same order, which enters and leaves by its first GPU: the tree's two sides.
  NcclGraph tree = ring;
  tree.id = kNcclTree;
  tree.pattern = 3;
  set_types(topology, paths, tree);
  return std::vector<NcclGraph>{std::move(ring), std::move(tree)};
}

Result<ExpectedGraph> expected_nccl_ring(const Topology& topology, bool alone) {
  GDRX_TRY(is_for_nccl(topology));
  ExpectedGraph expected;
  const NicPaths paths(topology);
  const Order nets = alone ? Order() : nccl_nets(topology);
  if (!nets.empty()) {
    between_hosts(topology, paths, nets, expected);
  } else {
    // It tries the order of bus ids first, and another only where that carries less.
    Order listed(topology.gpus().size());
    std::iota(listed.begin(), listed.end(), std::size_t{0});
    const bool known = all_alike(topology);
    const ChannelSpeed speed =
        channel_speed(least_sm(topology), {}, between_gpus(topology, listed, true), false);
    expected.ring.intra = expected.ring.inter = speed.gbytes;
    expected.ring.channels.assign(speed.channels, {kNone, kNone, known ? listed : Order()});
    if (!known) {
      expected.ring.channels.clear();
      expected.ring.intra = expected.ring.inter = 0;
      expected.notes.emplace_back(
          "rings over NVLinks that join some pairs of GPUs and not others, or unequally");
    }
  }
  set_types(topology, paths, expected.ring);
  return expected;
}

}  // namespace gdrx::topo
