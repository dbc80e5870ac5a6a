// SPDX-License-Identifier: Apache-2.0
#include "tools/place/here.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <set>

#include "base/cpu_list.hpp"
#include "topo/read/field_text.hpp"
#include "topo/read/host_files.hpp"

namespace gdrx::tools {
namespace {

std::optional<std::string> allowed_cpus(const topo::HostFiles& files) {
  constexpr std::string_view kWord = "Cpus_allowed_list:";
  const std::string text = files.read("proc/self/status");
  const auto at = text.find(kWord);
  if (at == text.npos) return std::nullopt;
  const std::string_view rest = std::string_view(text).substr(at + kWord.size());
  return std::string(topo::trim(rest.substr(0, rest.find('\n'))));
}

bool opens(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file >= 0) close(file);
  return file >= 0;
}

bool of_one_model(const topo::Topology& topology, const std::vector<std::size_t>& gpus) {
  std::set<int> devices;
  for (const std::size_t gpu : gpus) {
    const std::size_t node = topology.gpus()[gpu].node;
    devices.insert(node == topo::kNone ? -1 : topology.nodes()[node].device);
  }
  return devices.size() <= 1;
}

// CUDA counts the fastest GPU first unless it is told otherwise: which that is no file tells.
Result<void> known_order(const topo::Topology& topology, const std::vector<std::size_t>& present,
                         std::string_view shown) {
  const char* set = std::getenv("CUDA_DEVICE_ORDER");
  const std::string_view order = set == nullptr ? "" : set;
  const bool numbers = shown.find_first_of("0123456789") == 0;
  if (order == "PCI_BUS_ID" || (order.empty() && !numbers)) return {};
  if (of_one_model(topology, present)) return {};
  return fail(Errc::invalid_argument,
              "GPUs of several models are here, which CUDA counts by their speed: set "
              "CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

const char* first_set(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const char* const value = std::getenv(name); value != nullptr) return value;
  }
  return nullptr;
}

}  // namespace

std::vector<std::size_t> present_here(const topo::Topology& topology) {
  return present_gpus(topology, topo::HostFiles("/"), opens);
}

Result<topo::PlaceRequest> request_here(const topo::Topology& topology) {
  topo::PlaceRequest request;
  request.cpus = allowed_cpus(topo::HostFiles("/"));
  std::vector<std::size_t> present = present_here(topology);
  const char* shown = nullptr;
  if (is_amd(topology)) {
    // HIP counts what the layer below it shows.
    if (const char* const below = std::getenv("ROCR_VISIBLE_DEVICES"); below != nullptr) {
      const auto left = GDRX_TRY(visible_gpus(topology, below, present));
      present.clear();
      for (const topo::VisibleGpu& gpu : left) {
        if (gpu.gpu != topo::kNone) present.push_back(gpu.gpu);
      }
    }
    shown = first_set({"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"});
  } else {
    shown = std::getenv("CUDA_VISIBLE_DEVICES");
    GDRX_TRY(known_order(topology, present, shown == nullptr ? "" : shown));
  }
  if (shown != nullptr) {
    request.gpus = GDRX_TRY(visible_gpus(topology, shown, present));
  } else if (present != all_gpus(topology)) {
    request.gpus.emplace();
    for (const std::size_t gpu : present) {
      request.gpus->push_back({gpu, std::to_string(request.gpus->size())});
    }
  }
  return request;
}

std::string within(const std::string& list, const std::optional<std::string>& limit) {
  const std::vector<int> wanted = cpus_of_list(list);
  if (!limit) return list_of_cpus(wanted);
  const std::vector<int> may = cpus_of_list(*limit);
  std::vector<int> both;
  std::set_intersection(wanted.begin(), wanted.end(), may.begin(), may.end(),
                        std::back_inserter(both));
  return list_of_cpus(both);
}

std::vector<std::size_t> all_gpus(const topo::Topology& topology) {
  std::vector<std::size_t> all(topology.gpus().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace gdrx::tools
