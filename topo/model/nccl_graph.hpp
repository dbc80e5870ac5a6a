// SPDX-License-Identifier: Apache-2.0
// NCCL's graphs: in which order a channel goes through the GPUs of a host, and by which NICs it
// enters and leaves. What gdrx would have NCCL do (NCCL_GRAPH_FILE), and what NCCL's own search is
// expected to find. As of NCCL 2.30.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

struct NcclChannel {
  std::size_t in = kNone;   // a NIC, where there are any
  std::size_t out = kNone;  // the same without crossnic
  std::vector<std::size_t> gpus;
  friend bool operator==(const NcclChannel&, const NcclChannel&) = default;
};

inline constexpr int kNcclRing = 0;  // ids
inline constexpr int kNcclTree = 1;

struct NcclGraph {
  int id = kNcclRing;
  int pattern = 4;    // 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 NVLS, 6 CollNet direct
  int cross_nic = 0;  // 0: the same rail, 1: any, 2: where that is faster
  double intra = 0;   // GB/s of each channel, between GPUs and between hosts
  double inter = 0;
  std::string type_intra = "SYS";  // the farthest path that a channel takes
  std::string type_inter = "PIX";
  std::vector<NcclChannel> channels;
};

/// NICs as NCCL's own transport counts them: by bus id (NCCL_IB_DEVICE_PCI_ORDER's default), then
/// by port. Only those of gdrx's map, hardware with a port up: what NCCL_IB_HCA of `--format env`
/// lets through.
std::vector<std::size_t> nccl_nets(const Topology& topology);

/// Whether NVSwitches may join hosts, as in an NVL72: GPUs on a Grace with NVLinks to switches, or
/// whose name is of such racks.
/// NCCL then takes several hosts for one, and a graph of one host breaks its ring.
bool may_span_hosts_by_nvlink(const Topology& topology);

/// Ring and tree by gdrx's ring and map. `alone`: for jobs of this host alone, without NICs; a host
/// that has none is alone. Error: no GPU, AMD's, or more devices than NCCL takes.
Result<std::vector<NcclGraph>> our_nccl_graphs(const Topology& topology, bool alone);

struct ExpectedGraph {
  NcclGraph ring;                  // channels without GPUs: their order is not modelled
  std::vector<std::string> notes;  // what is not modelled here
};
/// What NCCL's search finds: its table of speeds, its first order, its choice of NICs.
Result<ExpectedGraph> expected_nccl_ring(const Topology& topology, bool alone);

/// NCCL's file, for NCCL_GRAPH_FILE.
std::string nccl_graph_xml(const Topology& topology, const std::vector<NcclGraph>& graphs);
/// And back: what NCCL dumps (NCCL_GRAPH_DUMP_FILE) or reads. Errors name the line: what NCCL would
/// refuse, or take and fail on later: a GPU that is not there, is there twice or lacks, NICs that
/// are not at both ends, another number of channels than it says, a path type that it does not
/// know.
Result<std::vector<NcclGraph>> parse_nccl_graphs(std::string_view text, const std::string& source,
                                                 const Topology& topology);

}  // namespace gdrx::topo
