// SPDX-License-Identifier: Apache-2.0
// A placement in the words of launchers. Names from a file enter a shell's line as one word.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/cpu_list.hpp"
#include "doctor/shell.hpp"
#include "tools/place/place_view.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/place/cores.hpp"

namespace gdrx::tools {
namespace {

using topo::Placement;
using topo::RankPlace;
using topo::Topology;

std::string word(std::string_view text) { return doctor::ShellWord(text).text(); }

// The ranks of the host with most of them: the first one.
std::vector<const RankPlace*> one_host(const Placement& placement) {
  std::vector<const RankPlace*> ranks;
  for (const RankPlace& rank : placement.ranks) {
    if (rank.host == 0) ranks.push_back(&rank);
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
      text += fmt::format(" set -- taskset -c {} \"$@\";", list_of_cpus(rank->cpus));
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

// One script is for every host.
Result<void> even(const Placement& placement, std::string_view format) {
  if (is_even(placement)) return {};
  return fail(Errc::invalid_argument,
              fmt::format("{} ranks on {} hosts: --format {} is for the same number on each",
                          placement.ranks.size(), placement.hosts, format));
}

// Open MPI reads an appfile without a shell: nothing quotes.
bool is_plain(std::string_view value) { return value.find_first_of(" \t\n\r#'\"\\") == value.npos; }

}  // namespace

std::string place_rankfile(const Placement& placement) {
  // Open MPI takes "+n1" for the second host of an allocation or hostfile, and needs one for that.
  const bool single = placement.hosts == 1;
  std::string text =
      fmt::format("# mpirun --mca rmaps_rank_file_physical 1 --rankfile FILE{}{} ...\n",
                  single ? "" : " --hostfile HOSTS", placement.crowded ? " --oversubscribe" : "");
  text += notes(placement);
  for (const RankPlace& rank : placement.ranks) {
    text += rank.cpus.empty() ? fmt::format("# rank {}: no CPUs are known\n", rank.rank)
                              : fmt::format("rank {}={} slot={}\n", rank.rank,
                                            single ? "localhost" : fmt::format("+n{}", rank.host),
                                            list_of_cpus(rank.cpus));
  }
  return text;
}

Result<std::string> place_appfile(const Topology& topology, const Placement& placement) {
  std::string text =
      fmt::format("# mpirun --bind-to none{}{} --app FILE, with your program for ./app\n",
                  placement.hosts > 1 ? " --hostfile HOSTS" : "",
                  placement.hosts == 1 || placement.crowded ? " --oversubscribe" : "");
  text += notes(placement);
  for (const RankPlace& rank : placement.ranks) {
    text += "-np 1";
    if (placement.hosts > 1) text += fmt::format(" -host +n{}", rank.host);
    for (const auto& [name, value] : rank_environment(topology, placement, rank)) {
      if (!is_plain(value)) {
        return fail(Errc::invalid_argument,
                    fmt::format("--format appfile: {} would be {}, which an appfile cannot hold",
                                name, word(value)));
      }
      text += fmt::format(" -x {}={}", name, value);
    }
    if (!rank.cpus.empty()) text += fmt::format(" taskset -c {}", list_of_cpus(rank.cpus));
    text += " ./app\n";
  }
  return text;
}

Result<std::string> place_srun(const Topology& topology, const Placement& placement) {
  GDRX_TRY(even(placement, "srun"));
  const auto ranks = one_host(placement);
  // Masks are honoured for whole hosts alone, and numbers of GPUs are those of all of them.
  std::string text = fmt::format(
      "#!/bin/sh\n# srun --exclusive --nodes={} --ntasks={} --ntasks-per-node={} "
      "--distribution=block",
      placement.hosts, placement.ranks.size(), ranks.size());
  if (!placement.gpu_tokens.empty()) {
    text += fmt::format(" --gpus-per-node={} --gpu-bind=none", topology.gpus().size());
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
        return gpu.node != topo::kNone &&
               topology.nodes()[gpu.node].vendor == topo::vendor::kNvidia;
      });
  // Device files are numbered otherwise than bus ids are ordered: Slurm has to ask the driver.
  if (nvidia) text += "# gres.conf: AutoDetect=nvml\n";
  return text + cases(topology, placement, "SLURM_LOCALID", false);
}

Result<std::string> place_torchrun(const Topology& topology, const Placement& placement) {
  GDRX_TRY(even(placement, "torchrun"));
  const auto ranks = one_host(placement);
  std::string text = "#!/bin/sh\n";
  if (placement.hosts == 1) {
    text += fmt::format(
        "# torchrun --standalone --nproc-per-node {} --no-python sh THIS_FILE python3 train.py\n",
        ranks.size());
  } else {
    text += fmt::format(
        "# on each host, HOST0 being one of them; torchrun numbers the hosts:\n"
        "# torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d --rdzv-id JOB "
        "--rdzv-endpoint HOST0:29500 --no-python sh THIS_FILE python3 train.py\n",
        placement.hosts, ranks.size());
  }
  return text + notes(placement) + cases(topology, placement, "LOCAL_RANK", true);
}

namespace {

// The kubelet's policies. Both static ones start with a reserve alone.
std::string kubelet(const std::set<int>& nodes, const std::vector<int>& reserve) {
  const bool single = nodes.size() == 1;
  std::string text = "# of the kubelet's configuration; MEMORY is yours to say\n";
  text += "cpuManagerPolicy: static\nmemoryManagerPolicy: Static\ntopologyManagerScope: pod\n";
  text += fmt::format("topologyManagerPolicy: {}\n", single ? "single-numa-node" : "restricted");
  text += fmt::format("reservedSystemCPUs: \"{}\"\n", list_of_cpus(reserve));
  text +=
      "reservedMemory: # in all as much as kubeReserved, systemReserved and the hard eviction "
      "threshold\n- numaNode: 0\n  limits:\n    memory: MEMORY\n";
  return text + (single ? "# all ranks of a host are on one NUMA node\n---\n"
                        : fmt::format("# ranks of a host are on NUMA nodes {}\n---\n",
                                      fmt::join(nodes, ", ")));
}

}  // namespace

Result<std::string> place_k8s(const Topology& topology, const Placement& placement) {
  GDRX_TRY(even(placement, "k8s"));
  std::set<int> nodes;
  std::set<std::size_t> nics;
  std::set<int> cpus;
  const auto ranks = one_host(placement);
  for (const RankPlace* rank : ranks) {
    nodes.insert(rank->numa.begin(), rank->numa.end());
    cpus.insert(rank->cpus.begin(), rank->cpus.end());
    for (const topo::RailChoice& choice : rank->nics) nics.insert(choice.nic);
  }
  const auto all = topo::cores_of(topology, std::nullopt);
  if (cpus.empty() || all.empty()) {
    return fail(Errc::invalid_argument,
                "--format k8s: the source tells no CPUs, of which a pod has to have a number");
  }
  // The first core is for the system.
  const std::vector<int>& reserve = all.front().cores.front();
  for (const int cpu : reserve) cpus.erase(cpu);
  if (cpus.empty()) {
    return fail(Errc::invalid_argument,
                "--format k8s: one core alone, and the kubelet needs one for the system");
  }
  std::string text = kubelet(nodes, reserve);
  text += fmt::format(
      "# of the pod, of which there {}; with memory and a whole number of CPUs in the limits the "
      "CPUs are its own\n",
      placement.hosts == 1 ? "is 1" : fmt::format("are {}", placement.hosts));
  text += notes(placement) + "resources:\n  limits:\n";
  if (!placement.gpu_tokens.empty()) {
    text += fmt::format("    {}: {}\n", is_amd(topology) ? "amd.com/gpu" : "nvidia.com/gpu",
                        std::min(placement.gpu_tokens.size(), ranks.size()));
  }
  text += fmt::format("    cpu: {}\n    memory: MEMORY\n", cpus.size());
  if (!nics.empty()) {
    text += fmt::format("    # and {} RDMA NIC{}, as your device plugin names them\n", nics.size(),
                        nics.size() == 1 ? "" : "s");
  }
  return text;
}

}  // namespace gdrx::tools
