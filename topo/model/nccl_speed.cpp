// SPDX-License-Identifier: Apache-2.0
#include "topo/model/nccl_speed.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace gdrx::topo {
namespace {

constexpr std::size_t kMostChannels = 32;  // of a ring, before NCCL doubles them
constexpr double kBetweenSockets = 10;     // Skylake's; others 6 to 40
constexpr double kUnknownNic = 12;         // NCCL's, too
constexpr double kUnknownPci = 12;

// The tables of speeds that the search goes down: within a host and between hosts, by generation.
constexpr std::array kIntra80{40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0,
                              9.0,  7.0,  6.0,  5.0,  4.0,  3.0};
constexpr std::array kInter80{48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0,
                              7.0,  6.0,  5.0,  4.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array kIntra90{60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
constexpr std::array kInter90{48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5,
                              15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};
constexpr std::array kIntra100{90.0, 80.0, 70.0, 60.0, 50.0, 45.0,
                               40.0, 30.0, 24.0, 20.0, 19.0, 18.0};
constexpr std::array kInter100{96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0,
                               20.0, 17.5, 15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};

std::span<const double> table_of(int sm, bool between_hosts) {
  if (sm >= 100) return between_hosts ? std::span<const double>(kInter100) : kIntra100;
  if (sm >= 90) return between_hosts ? std::span<const double>(kInter90) : kIntra90;
  return between_hosts ? std::span<const double>(kInter80) : kIntra80;
}

double rate_of_nvlink(int sm) {
  if (sm >= 100) return 40.1;
  if (sm >= 90) return 20.6;
  if (sm == 86 || sm == 89) return 12;
  if (sm >= 70) return 20;
  return 18;
}

// A lane's after all overhead, in GB/s: NCCL's 12 for 16 lanes of generation 3, and so on.
double pci_rate(const Link& link) {
  const double bytes = gbytes(link).value_or(0);
  constexpr double kOfCoded = 12 / 15.754;
  const bool can_be = bytes > 0 && bytes < 1e4;  // files say anything
  return can_be ? std::round(bytes * kOfCoded * 10) / 10 : kUnknownPci;
}

double own_rate(const Topology& topology, DeviceId id) {
  const std::size_t node = topology.node(id);
  return node == kNone ? kUnknownPci : pci_rate(topology.nodes()[node].link);
}

// NCCL doubles the channels of a fast ring and halves their speed, so that each has less to carry.
ChannelSpeed doubled(int sm, ChannelSpeed found) {
  if (found.gbytes < 25 || (sm > 80 && found.gbytes < 50 && found.channels > 4)) return found;
  const std::size_t more = std::min(2 * found.channels, kMostChannels);
  found.gbytes /= static_cast<double>((more + found.channels - 1) / found.channels);
  found.channels = more;
  return found;
}

std::size_t whole(double total, double each) {
  return static_cast<std::size_t>(std::clamp(std::floor(total / each + 1e-6), 0.0, 1e4));
}

}  // namespace

int least_sm(const Topology& topology) {
  int least = 0;
  for (const Gpu& gpu : topology.gpus()) {
    if (gpu.sm > 0) least = least == 0 ? gpu.sm : std::min(least, gpu.sm);
  }
  return least;
}

double nccl_nvlink_rate(const Topology& topology, std::size_t gpu) {
  int links = 0;
  for (const NvLink& link : topology.nvlinks()) {
    if (link.gpu == gpu) links += link.count;
  }
  return links * rate_of_nvlink(topology.gpus()[gpu].sm);
}

double nccl_rate(const Topology& topology, DeviceId a, DeviceId b) {
  if (topology.is_gpu(a) && topology.is_gpu(b)) {
    const int links = topology.nvlinks_between(index(a), index(b));
    if (links > 0) return links * rate_of_nvlink(least_sm(topology));
  }
  double rate = std::min(own_rate(topology, a), own_rate(topology, b));
  const Path way = path(topology, a, b);
  if (way.bottleneck && !way.limit.ends_with("'s port")) {
    Link slowest;
    slowest.total = *way.bottleneck;
    rate = std::min(rate, pci_rate(slowest));
  }
  if (way.nccl == NcclClass::sys || way.nccl == NcclClass::unknown) {
    rate = std::min(rate, kBetweenSockets);
  }
  for (const DeviceId id : {a, b}) {
    if (topology.is_gpu(id)) continue;
    const double gigabits = topology.nics()[index(id) - topology.gpus().size()].gigabits;
    rate = std::min(rate, gigabits > 0 && gigabits < 1e5 ? gigabits / 8 : kUnknownNic);
  }
  return rate;
}

std::size_t type_place(std::string_view type) {
  return static_cast<std::size_t>(std::find(kNcclTypes.begin(), kNcclTypes.end(), type) -
                                  kNcclTypes.begin());
}

std::size_t nccl_type(const Topology& topology, DeviceId a, DeviceId b) {
  const NcclClass type = path(topology, a, b).nccl;
  if (type == NcclClass::c2c) return type_place("NVL");  // NCCL's files have no word for it
  return std::min(type_place(to_string(type)), kNcclTypes.size() - 1);
}

NicPaths::NicPaths(const Topology& topology) : nics_(topology.nics().size()) {
  const std::size_t gpus = topology.gpus().size();
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    for (std::size_t nic = 0; nic < nics_; ++nic) {
      from_.push_back(nccl_type(topology, topology.gpu(gpu), topology.nic(nic)));
      rates_.push_back(nccl_rate(topology, topology.gpu(gpu), topology.nic(nic)));
    }
  }
  to_ = from_;
  const std::size_t served = type_place("PXN");
  const std::size_t near = type_place("P2C");
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    for (std::size_t other = 0; other < gpus; ++other) {
      if (other == gpu || topology.nvlinks_between(gpu, other) == 0) continue;
      for (std::size_t nic = 0; nic < nics_; ++nic) {
        std::size_t& own = to_[gpu * nics_ + nic];
        if (own > served && at(from_, other, nic) <= near) own = served;
      }
    }
  }
}

ChannelSpeed channel_speed(int sm, const std::vector<double>& lanes, double total, bool even) {
  ChannelSpeed best{1, 0};
  const auto table = table_of(sm, !lanes.empty());
  for (const double speed : table) {
    if (best.gbytes > 0 && speed / best.gbytes <= 0.49) break;
    std::size_t channels = std::min(whole(total, speed), kMostChannels);
    if (!lanes.empty()) {
      std::size_t by_nics = 0;
      std::size_t each = kMostChannels;
      for (const double lane : lanes) {
        by_nics += whole(lane, speed);
        each = std::min(each, whole(lane, speed));
      }
      if (even) {
        each = std::min(each, channels / lanes.size());
        by_nics = each * lanes.size();
      }
      channels = std::min(channels, by_nics);
    }
    const double carried = static_cast<double>(channels) * speed;
    if (carried > static_cast<double>(best.channels) * best.gbytes) best = {channels, speed};
    if (carried >= total) break;
  }
  if (best.gbytes <= 0 && even) return channel_speed(sm, lanes, total, false);  // too many NICs
  if (best.gbytes <= 0) {
    // The least of all, as many as there are NICs: what NCCL falls back to is slower still.
    return {std::clamp<std::size_t>(lanes.size(), 1, kMostChannels), table.back()};
  }
  return doubled(sm, best);
}

}  // namespace gdrx::topo
