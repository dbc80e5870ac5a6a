// SPDX-License-Identifier: Apache-2.0
// What one host has, as names and values: equal hosts have equal traits.
#include <map>

#include "doctor/checks/checks.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {
namespace {

class Traits {
 public:
  explicit Traits(const HostFacts& facts) : facts_(facts), files_(facts.files) {}

  std::vector<Trait> all() {
    host();
    for (const topo::Nic& nic : facts_.topology.nics()) card(nic);
    for (const Port& port : facts_.ports) wire(port);
    distances();
    return std::move(traits_);
  }

 private:
  void add(std::string name, std::string value) {
    if (!value.empty()) traits_.push_back({std::move(name), std::move(value)});
  }
  static std::string limit(std::optional<std::uint64_t> value, bool bytes) {
    if (!value) return {};
    if (*value == kUnlimited) return "unlimited";
    return bytes ? bytes_text(*value) : std::to_string(*value);
  }

  void host() {
    add("kernel", facts_.release);
    add("distribution", facts_.distribution.name);
    add("NVIDIA driver", files_.read("sys/module/nvidia/version"));
    if (facts_.cuda) add("CUDA of the driver", std::to_string(facts_.cuda->driver));
    std::map<std::string, int> models;
    for (const topo::Gpu& gpu : facts_.topology.gpus()) {
      ++models[gpu.model.empty() ? "GPU" : gpu.model];
    }
    std::string gpus;
    for (const auto& [model, count] : models) {
      gpus += fmt::format("{}{} x {}", gpus.empty() ? "" : ", ", count, model);
    }
    add("GPUs", gpus.empty() ? "none" : gpus);
    std::string nics;
    for (const topo::Nic& nic : facts_.topology.nics())
      nics += (nics.empty() ? "" : " ") + nic.name;
    add("RDMA NICs", nics.empty() ? "none" : nics);
    if (facts_.has_nvidia_gpu) {
      add("nvidia-peermem", files_.exists("sys/module/nvidia_peermem") ? "loaded" : "not loaded");
    }
    add("IOMMU", files_.list("sys/class/iommu").empty() ? "off" : "on");
    add("NUMA nodes", std::to_string(facts_.topology.numa().size()));
    add("NUMA balancing", files_.read("proc/sys/kernel/numa_balancing"));
    add("locked memory", limit(facts_.probes.limit(Resource::memlock), true));
    add("open files", limit(facts_.probes.limit(Resource::nofile), false));
    const auto shm = facts_.probes.file_system_bytes("/dev/shm");
    if (shm) add("/dev/shm", fmt::format("{} GiB", (*shm + (1u << 29)) >> 30));
  }
  void card(const topo::Nic& nic) {
    const std::filesystem::path folder = std::filesystem::path("sys/class/infiniband") / nic.name;
    add(nic.name + " board", files_.read(folder / "board_id"));
    add(nic.name + " firmware", files_.read(folder / "fw_ver"));
  }
  void wire(const Port& port) {
    add(port.name() + " state", files_.read(port.folder / "state"));
    add(port.name() + " rate", files_.read(port.folder / "rate"));
    add(port.name() + " link layer", files_.read(port.folder / "link_layer"));
    if (!port.netdev.empty()) {
      add(port.name() + " MTU", files_.read("sys/class/net/" + port.netdev + "/mtu"));
    }
    for (const Finding& one : gids_) {
      if (one.subject == port.name()) add(port.name() + " GID", one.summary);
    }
  }
  void distances() {
    const topo::Topology& topology = facts_.topology;
    for (std::size_t i = 0; i < topology.gpus().size(); ++i) {
      std::string row;
      for (std::size_t j = 0; j < topology.nics().size(); ++j) {
        if (topology.nics()[j].is_virtual) continue;
        const topo::Path path = topo::path(topology, topology.gpu(i), topology.nic(j));
        row += (row.empty() ? "" : " ") + topo::cell(path, true);
      }
      add(topology.gpus()[i].name + " to NICs", row);
    }
  }

  const HostFacts& facts_;
  const topo::HostFiles& files_;
  Findings gids_ = check_roce_gid(facts_);
  std::vector<Trait> traits_;
};

}  // namespace

std::vector<Trait> traits_of(const HostFacts& facts) { return Traits(facts).all(); }

}  // namespace gdrx::doctor
