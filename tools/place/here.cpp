// SPDX-License-Identifier: Apache-2.0
#include "tools/place/here.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include "topo/model/cpu_list.hpp"
#include "topo/read/host_files.hpp"
#include "topo/read/text.hpp"

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

}  // namespace

Result<topo::PlaceRequest> request_here(const topo::Topology& topology) {
  const topo::HostFiles files("/");
  topo::PlaceRequest request;
  request.cpus = allowed_cpus(files);
  const std::vector<std::size_t> present = present_gpus(topology, files, opens);
  const char* shown = std::getenv("CUDA_VISIBLE_DEVICES");
  if (shown == nullptr) shown = std::getenv("HIP_VISIBLE_DEVICES");
  if (shown != nullptr) {
    request.gpus = GDRX_TRY(visible_gpus(topology, shown, present));
  } else if (present.size() < topology.gpus().size()) {
    request.gpus.emplace();
    for (const std::size_t gpu : present) {
      request.gpus->push_back({gpu, std::to_string(request.gpus->size())});
    }
  }
  return request;
}

std::string within(const std::string& list, const std::optional<std::string>& limit) {
  const std::vector<int> wanted = topo::cpus_of_list(list);
  if (!limit) return topo::list_of_cpus(wanted);
  const std::vector<int> may = topo::cpus_of_list(*limit);
  std::vector<int> both;
  std::set_intersection(wanted.begin(), wanted.end(), may.begin(), may.end(),
                        std::back_inserter(both));
  return topo::list_of_cpus(both);
}

std::vector<std::size_t> all_gpus(const topo::Topology& topology) {
  std::vector<std::size_t> all(topology.gpus().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace gdrx::tools
