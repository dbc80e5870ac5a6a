// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/printable.hpp"
#include "topo/model/pci_vendor.hpp"
#include "topo/place/placement.hpp"
#include "topo/read/field_text.hpp"
#include "topo/read/host_files.hpp"

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

// -1: not told.
int minor_of(std::string_view information) {
  constexpr std::string_view kWord = "Device Minor:";
  const auto at = information.find(kWord);
  if (at == information.npos) return -1;
  const std::string_view rest = information.substr(at + kWord.size());
  return to_int(trim(rest.substr(0, rest.find('\n'))), -1);
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
                              printable(next->token)));
    }
    shown.push_back(*next);
  }
  return shown;
}

std::vector<std::size_t> present_gpus(const Topology& topology, const HostFiles& files,
                                      const std::function<bool(const std::string&)>& opens) {
  std::vector<std::size_t> others;  // than NVIDIA's, or nobody tells
  std::vector<std::size_t> untold;  // of a driver that hides them in a container, or is not there
  std::vector<std::size_t> shown;
  bool tells = false;
  for (std::size_t i = 0; i < topology.gpus().size(); ++i) {
    const std::size_t node = topology.gpus()[i].node;
    if (node == kNone || topology.nodes()[node].vendor != vendor::kNvidia) {
      others.push_back(i);
      continue;
    }
    const std::string text = files.read(
        fmt::format("proc/driver/nvidia/gpus/{}/information", topology.nodes()[node].name));
    if (text.empty()) {
      untold.push_back(i);
      continue;
    }
    tells = true;
    const int minor = minor_of(text);
    if (minor < 0 || opens(fmt::format("/dev/nvidia{}", minor))) shown.push_back(i);
  }
  if (!tells) shown = untold;
  shown.insert(shown.end(), others.begin(), others.end());
  std::sort(shown.begin(), shown.end());
  return shown;
}

}  // namespace gdrx::topo
