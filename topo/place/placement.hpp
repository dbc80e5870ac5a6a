// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job belong: pure functions from a described machine to a GPU, NICs and cores
// for each rank, with the reasons.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

class HostFiles;

/// A GPU that programs may see, as CUDA_VISIBLE_DEVICES names it.
struct VisibleGpu {
  std::size_t gpu = kNone;  // kNone: a MIG instance of which it is not known whose it is
  std::string token;        // "3", "GPU-8932f937", "MIG-..."
};

/// What CUDA makes of CUDA_VISIBLE_DEVICES: numbers in the order of bus ids, UUIDs or what they
/// begin with, MIG instances. As in CUDA the first that is none ends the list; "" and "-1" hide
/// all. `present`: the GPUs that there are for this process, ascending; numbers count them.
/// Error: a GPU that is named twice, of which CUDA shows none.
Result<std::vector<VisibleGpu>> visible_gpus(const Topology& topology, std::string_view text,
                                             const std::vector<std::size_t>& present);

/// Whether any GPU is AMD's.
bool is_amd(const Topology& topology);

/// The GPUs that the driver tells and whose device file can be opened: containers and cgroups of
/// devices hide the others, while sysfs tells them. `opens`: whether a path can be. Others' GPUs
/// than NVIDIA's are all there.
std::vector<std::size_t> present_gpus(const Topology& topology, const HostFiles& files,
                                      const std::function<bool(const std::string&)>& opens);

struct PlaceRequest {
  int ranks = 0;  // of the job; 0: one a visible GPU of each host, without GPUs one a core
  int hosts = 1;  // equal ones; the first have one rank more where it does not divide evenly
  std::optional<std::string> cpus = std::nullopt;              // that may be used; nothing: all
  std::optional<std::vector<VisibleGpu>> gpus = std::nullopt;  // nothing: all
};

struct RankPlace {
  int rank = 0;
  int host = 0;
  int local = 0;            // its number on the host
  std::size_t gpu = kNone;  // of Topology::gpus()
  std::string token;        // how CUDA_VISIBLE_DEVICES names the GPU
  std::vector<RailChoice> nics;
  std::vector<int> numa;  // the nodes of its cores
  std::size_t cores = 0;  // 0: no core is known
  std::vector<int> cpus;  // of these cores, ascending
  int progress_cpu = -1;  // for a thread that polls: on the last core; -1: none but the rank's own
  std::string reason;     // one line: GPU, NIC, cores
};

struct Placement {
  int hosts = 1;
  std::vector<RankPlace> ranks;         // by rank: those of a host in a row
  std::vector<std::string> gpu_tokens;  // of the visible GPUs, in the order of local ranks
  bool reorders_gpus = false;           // that is not the order in which programs see them
  bool crowded = false;                 // more ranks on the first host than cores
  std::vector<std::string> host_names;  // by number, where they are known
  std::vector<std::string> notes;       // one line each: what is shared, hidden or not known
};

/// Errors: a number of ranks out of range, no core left of those that the source tells.
Result<Placement> place(const Topology& topology, const PlaceRequest& request);

/// NAME and value of what tells this rank's program about it: CUDA_DEVICE_ORDER,
/// CUDA_VISIBLE_DEVICES (HIP_VISIBLE_DEVICES), UCX_NET_DEVICES. Every GPU stays visible, so that
/// GPUs of a host reach each other: local rank i finds its own as device i. MIG instances are
/// the exception, as CUDA gives a process one at most.
std::vector<std::pair<std::string, std::string>> rank_environment(const Topology& topology,
                                                                  const Placement& placement,
                                                                  const RankPlace& rank);

}  // namespace gdrx::topo
