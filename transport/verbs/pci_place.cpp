// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/pci_place.hpp"

#include <fstream>

namespace gdrx::verbs {
namespace {

// "0000:3b:00.0", as sysfs names PCI functions.
bool is_function(std::string_view name) {
  return name.size() >= 12 && name[name.size() - 8] == ':' && name[name.size() - 5] == ':' &&
         name[name.size() - 2] == '.';
}

std::string_view first_part(std::string_view& path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

}  // namespace

PciDistance pci_distance(std::string_view a, std::string_view b) {
  bool root = false;
  while (true) {
    const std::string_view part = first_part(a);
    if (part != first_part(b) || part.empty()) break;
    // One function above both is a bridge; the devices' own names differ.
    if (is_function(part)) return PciDistance::below_one_bridge;
    root = root || part.starts_with("pci");
  }
  if (root) return PciDistance::below_one_root;
  return a.empty() || b.empty() ? PciDistance::unknown : PciDistance::apart;
}

std::uint32_t slot_speed(const std::string& folder) {
  double transfers = 0;  // GT/s of a lane: "16.0 GT/s PCIe"
  std::uint32_t lanes = 0;
  std::ifstream(folder + "/current_link_speed") >> transfers;
  std::ifstream(folder + "/current_link_width") >> lanes;
  if (!(transfers > 0 && transfers < 1000) || lanes == 0 || lanes > 32) return 0;
  // PCI Express Base Specification: 8b/10b up to 5 GT/s, then 128b/130b, then flits (242 of 256).
  const double coded = transfers <= 5    ? transfers * 8 / 10
                       : transfers <= 32 ? transfers * 128 / 130
                                         : transfers * 242 / 256;
  return static_cast<std::uint32_t>(coded * 1000 * lanes);
}

}  // namespace gdrx::verbs
