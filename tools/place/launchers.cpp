// SPDX-License-Identifier: Apache-2.0
// A placement in the words of launchers. Names from a file enter a shell's line as one word.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "tools/place/view.hpp"
#include "topo/doctor/shell.hpp"
#include "topo/model/cpu_list.hpp"
#include "topo/place/cores.hpp"

namespace gdrx::tools {
namespace {

using topo::Placement;
using topo::RankPlace;
using topo::Topology;

std::string word(std::string_view text) { return doctor::ShellWord(text).text(); }

// The ranks of the host with most of them: the last one.
std::vector<const RankPlace*> one_host(const Placement& placement) {
  std::vector<const RankPlace*> ranks;
  for (const RankPlace& rank : placement.ranks) {
    if (rank.host == placement.hosts - 1) ranks.push_back(&rank);
  }
  return ranks;
}

bool is_even(const Placement& placement) {
  return placement.ranks.size() ==
         one_host(placement).size() * static_cast<std::size_t>(placement.hosts);
}

std::string mask_of(const std::vector<int>& cpus) {
  constexpr int kBits = 4;
  std::string digits(cpus.empty() ? 1 : static_cast<std::size_t>(cpus.back() / kBits + 1), '0');
  for (const int cpu : cpus) {
    char& digit = digits[digits.size() - 1 - static_cast<std::size_t>(cpu / kBits)];
    const int value = (digit <= '9' ? digit - '0' : digit - 'a' + 10) | 1 << cpu % kBits;
    digit = "0123456789abcdef"[value];
  }
  return "0x" + digits;
}

// What a rank sets before its program, by its number on the host.
std::string cases(const Topology& topology, const Placement& placement, const char* variable,
                  bool binds) {
  std::string text = fmt::format("case \"${}\" in\n", variable);
  for (const RankPlace* rank : one_host(placement)) {
    text += fmt::format("  {})", rank->local);
    for (const auto& [name, value] : rank_environment(topology, placement, *rank)) {
      text += fmt::format(" export {}={};", name, word(value));
    }
    if (binds && !rank->cpus.empty()) {
      text += fmt::format(" set -- taskset -c {} \"$@\";", topo::list_of_cpus(rank->cpus));
    }
    text += text.back() == ')' ? " : ;;\n" : ";\n";
  }
  return text + "esac\nexec \"$@\"\n";
}

std::string notes(const Placement& placement) {
  std::string text;
  for (const std::string& note : placement.notes) text += "# " + note + "\n";
  return text;
}

// Slurm numbers cores by themselves, not by their CPUs.
std::string slurm_cores(const Topology& topology, int numa) {
  std::vector<int> cores;
  int number = 0;
  for (const topo::NodeCores& node : cores_of(topology, std::nullopt)) {
    for (std::size_t i = 0; i < node.cores.size(); ++i, ++number) {
      if (node.numa == numa) cores.push_back(number);
    }
  }
  return topo::list_of_cpus(cores);
}

}  // namespace

std::string place_rankfile(const Placement& placement) {
  // Open MPI takes "+n1" for the second host of an allocation or hostfile, and needs one for that.
  const bool single = placement.hosts == 1;
  std::string text =
      fmt::format("# mpirun --mca rmaps_rank_file_physical 1 --rankfile FILE{} ...\n",
                  single ? "" : " --hostfile HOSTS");
  text += notes(placement);
  for (const RankPlace& rank : placement.ranks) {
    text += rank.cpus.empty() ? fmt::format("# rank {}: no CPUs are known\n", rank.rank)
                              : fmt::format("rank {}={} slot={}\n", rank.rank,
                                            single ? "localhost" : fmt::format("+n{}", rank.host),
                                            topo::list_of_cpus(rank.cpus));
  }
  return text;
}

std::string place_appfile(const Topology& topology, const Placement& placement) {
  std::string text =
      "# mpirun --bind-to none --oversubscribe --app FILE, with your program for ./app\n";
  text += notes(placement);
  for (const RankPlace& rank : placement.ranks) {
    text += "-np 1";
    if (placement.hosts > 1) text += fmt::format(" -host +n{}", rank.host);
    for (const auto& [name, value] : rank_environment(topology, placement, rank)) {
      text += fmt::format(" -x {}={}", name, word(value));
    }
    if (!rank.cpus.empty()) text += fmt::format(" taskset -c {}", topo::list_of_cpus(rank.cpus));
    text += " ./app\n";
  }
  return text;
}

std::string place_srun(const Topology& topology, const Placement& placement) {
  const auto ranks = one_host(placement);
  std::string text = fmt::format("#!/bin/sh\n# srun --nodes={} --ntasks={}", placement.hosts,
                                 placement.ranks.size());
  if (is_even(placement)) text += fmt::format(" --ntasks-per-node={}", ranks.size());
  text += " --distribution=block";
  if (!placement.gpu_tokens.empty()) {
    text += fmt::format(" --gpus-per-node={} --gpu-bind=none", placement.gpu_tokens.size());
  }
  std::vector<std::string> masks;
  for (const RankPlace* rank : ranks) masks.push_back(mask_of(rank->cpus));
  const bool known = std::none_of(ranks.begin(), ranks.end(),
                                  [](const RankPlace* rank) { return rank->cpus.empty(); });
  text +=
      known ? fmt::format(" --cpu-bind=mask_cpu:{}", fmt::join(masks, ",")) : " --cpu-bind=none";
  text += " sh THIS_FILE ./app\n" + notes(placement);
  const bool nvidia =
      std::any_of(topology.gpus().begin(), topology.gpus().end(), [&](const auto& gpu) {
        return gpu.node != topo::kNone && topology.nodes()[gpu.node].vendor == 0x10de;
      });
  if (nvidia) text += "# gres.conf, or AutoDetect=nvml; compare core numbers with `slurmd -G`:\n";
  for (std::size_t i = 0; nvidia && i < topology.gpus().size(); ++i) {
    const std::string cores = slurm_cores(topology, topology.numa_near(topology.gpus()[i].node));
    text += fmt::format("#   Name=gpu File=/dev/nvidia{}{}\n", i,
                        cores.empty() ? "" : " Cores=" + cores);
  }
  return text + cases(topology, placement, "SLURM_LOCALID", false);
}

std::string place_torchrun(const Topology& topology, const Placement& placement) {
  const auto ranks = one_host(placement);
  std::string text = "#!/bin/sh\n";
  if (!is_even(placement)) {
    text += "# hosts have different numbers of ranks: each host's torchrun says its own\n";
  }
  if (placement.hosts == 1) {
    text += fmt::format(
        "# torchrun --standalone --nproc-per-node {} --no-python sh THIS_FILE python3 train.py\n",
        ranks.size());
  } else {
    text +=
        "# on each host, HOST0 being the first line of the hostfile, N that line's number from "
        "0:\n";
    text += fmt::format(
        "# torchrun --nnodes {} --node-rank N --nproc-per-node {} --rdzv-backend c10d "
        "--rdzv-endpoint "
        "HOST0:29500 --no-python sh THIS_FILE python3 train.py\n# hostfile, with your names:\n",
        placement.hosts, ranks.size());
    for (int host = 0; host < placement.hosts; ++host) {
      text += fmt::format("#   host{} slots={}\n", host, ranks.size());
    }
  }
  return text + notes(placement) + cases(topology, placement, "LOCAL_RANK", true);
}

std::string place_k8s(const Topology& topology, const Placement& placement) {
  const auto ranks = one_host(placement);
  std::set<int> nodes;
  std::set<std::size_t> nics;
  std::set<int> cpus;
  for (const RankPlace* rank : ranks) {
    nodes.insert(rank->numa.begin(), rank->numa.end());
    cpus.insert(rank->cpus.begin(), rank->cpus.end());
    for (const topo::RailChoice& choice : rank->nics) nics.insert(choice.nic);
  }
  const bool single = nodes.size() == 1;
  std::string text = "# of the kubelet's configuration\n";
  text += "cpuManagerPolicy: static\nmemoryManagerPolicy: Static\ntopologyManagerScope: pod\n";
  text += fmt::format("topologyManagerPolicy: {}\n", single ? "single-numa-node" : "restricted");
  text +=
      single ? "# all ranks of a host are on one NUMA node\n---\n"
             : fmt::format("# ranks of a host are on NUMA nodes {}\n---\n", fmt::join(nodes, ", "));
  text += fmt::format(
      "# of the pod, of which there are {}; a whole number of CPUs, so that they are its own\n",
      placement.hosts);
  text += notes(placement);
  std::string resources;
  if (!placement.gpu_tokens.empty()) {
    const bool amd =
        rank_environment(topology, placement, *ranks.front()).front().first.starts_with("HIP");
    resources += fmt::format("    {}: {}\n", amd ? "amd.com/gpu" : "nvidia.com/gpu",
                             std::min(placement.gpu_tokens.size(), ranks.size()));
  }
  if (!cpus.empty()) resources += fmt::format("    cpu: {}\n", cpus.size());
  text += "resources:\n  limits:\n" + (resources.empty() ? "    cpu: 1\n" : resources);
  if (!nics.empty()) {
    text += fmt::format("    # and {} RDMA NIC{}, as your device plugin names them\n", nics.size(),
                        nics.size() == 1 ? "" : "s");
  }
  return text;
}

}  // namespace gdrx::tools
