// SPDX-License-Identifier: Apache-2.0
// How fast NCCL takes links for, and which speed of its table its search settles on.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

/// The least compute capability of the GPUs, times ten; 0: not known.
int least_sm(const Topology& topology);

/// GB/s that NCCL counts between two GPUs, or between a GPU and a NIC. By the generation and lanes
/// of the links; a NIC's own rate; 10 between sockets, where NCCL goes by the CPU's model.
double nccl_rate(const Topology& topology, DeviceId a, DeviceId b);
/// Of all NVLinks of a GPU; 0: none.
double nccl_nvlink_rate(const Topology& topology, std::size_t gpu);

/// NCCL's words for paths, nearest first, by their place; SYS where it is not known.
inline constexpr std::array<std::string_view, 9> kNcclTypes{"LOC", "NVL", "NVB", "PIX", "PXB",
                                                            "P2C", "PXN", "PHB", "SYS"};
/// Its place; behind the last one where it is none.
std::size_t type_place(std::string_view type);
std::size_t nccl_type(const Topology& topology, DeviceId a, DeviceId b);

/// What NCCL counts between each GPU and each NIC, looked up once.
class NicPaths {
 public:
  explicit NicPaths(const Topology& topology);
  std::size_t from_nic(std::size_t nic, std::size_t gpu) const { return at(from_, gpu, nic); }
  /// PXN where a GPU that is joined by NVLink is near the NIC and serves this one.
  std::size_t to_nic(std::size_t gpu, std::size_t nic) const { return at(to_, gpu, nic); }
  double rate(std::size_t gpu, std::size_t nic) const { return at(rates_, gpu, nic); }

 private:
  template <class T>
  T at(const std::vector<T>& of, std::size_t gpu, std::size_t nic) const {
    return of[gpu * nics_ + nic];
  }
  std::size_t nics_;
  std::vector<std::size_t> from_;
  std::vector<std::size_t> to_;
  std::vector<double> rates_;
};

struct ChannelSpeed {
  std::size_t channels = 1;
  double gbytes = 0;  // of each
};
/// The first speed of the table by which the channels carry most. `lanes`: what each NIC carries;
/// none: the host is alone. `total`: what a GPU sends to the next one. `even`: as many channels for
/// each NIC, where they have that many.
ChannelSpeed channel_speed(int sm, const std::vector<double>& lanes, double total, bool even);

}  // namespace gdrx::topo
