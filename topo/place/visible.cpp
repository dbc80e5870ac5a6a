// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topo/place/placement.hpp"
#include "topo/read/host_files.hpp"
#include "topo/read/text.hpp"

namespace gdrx::topo {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// The one GPU whose UUID begins so; kNone: none, or several.
std::size_t by_uuid(const Topology& topology, std::string_view prefix,
                    const std::vector<std::size_t>& present) {
  std::size_t found = kNone;
  for (const std::size_t i : present) {
    if (!std::string_view(topology.gpus()[i].uuid).starts_with(prefix)) continue;
    if (found != kNone) return kNone;
    found = i;
  }
  return found;
}

// Nothing: CUDA stops here.
std::optional<VisibleGpu> one(const Topology& topology, std::string_view token,
                              const std::vector<std::size_t>& present) {
  VisibleGpu shown{kNone, std::string(token)};
  if (is_number(token)) {
    const int number = to_int(token, -1);
    if (number < 0 || static_cast<std::size_t>(number) >= present.size()) return {};
    shown.gpu = present[static_cast<std::size_t>(number)];
    return shown;
  }
  if (token.starts_with("MIG-GPU-")) {  // MIG-GPU-<uuid>/<instance>/<instance>
    shown.gpu = by_uuid(topology, token.substr(4, token.find('/') - 4), present);
    return shown;
  }
  if (token.starts_with("MIG-")) return shown;
  if (!token.starts_with("GPU-")) return {};
  shown.gpu = by_uuid(topology, token, present);
  if (shown.gpu == kNone) return {};
  return shown;
}

}  // namespace

Result<std::vector<VisibleGpu>> visible_gpus(const Topology& topology, std::string_view text,
                                             const std::vector<std::size_t>& present) {
  std::vector<VisibleGpu> shown;
  std::set<std::pair<std::size_t, std::string>> seen;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto next = one(topology, trim(text.substr(0, comma)), present);
    text.remove_prefix(std::min(comma + 1, text.size()));
    if (!next) break;
    const bool mig = next->token.starts_with("MIG-");
    if (!seen.emplace(mig ? kNone : next->gpu, mig ? next->token : "").second) {
      return fail(Errc::invalid_argument,
                  fmt::format("CUDA_VISIBLE_DEVICES names {} twice: CUDA shows no GPU then",
                              without_controls(next->token)));
    }
    shown.push_back(*next);
  }
  return shown;
}

std::vector<std::size_t> present_gpus(const Topology& topology, const HostFiles& files,
                                      const std::function<bool(const std::string&)>& opens) {
  constexpr std::string_view kWord = "Device Minor:";
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < topology.gpus().size(); ++i) {
    const std::size_t node = topology.gpus()[i].node;
    const std::string text = node == kNone
                                 ? ""
                                 : files.read(fmt::format("proc/driver/nvidia/gpus/{}/information",
                                                          topology.nodes()[node].name));
    const auto at = text.find(kWord);
    const std::string_view rest =
        at == text.npos ? "" : std::string_view(text).substr(at + kWord.size());
    const int minor = to_int(trim(rest.substr(0, rest.find('\n'))), -1);
    if (minor < 0 || opens(fmt::format("/dev/nvidia{}", minor))) present.push_back(i);
  }
  return present;
}

}  // namespace gdrx::topo
