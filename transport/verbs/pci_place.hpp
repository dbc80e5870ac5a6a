// SPDX-License-Identifier: Apache-2.0
// Where a NIC sits in its host, by sysfs: how near a GPU is, and what its slot carries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gdrx::verbs {

/// Nearest first, as `nvidia-smi topo -m` orders PIX and PXB, PHB, NODE and SYS.
enum class PciDistance : std::uint8_t { below_one_bridge, below_one_root, apart, unknown };

/// Between two devices by their folders in sysfs, symbolic links resolved; empty: unknown. Pure.
PciDistance pci_distance(std::string_view a, std::string_view b);

/// Mb/s of data that the slot of the device in that folder carries as it was trained, each way; 0:
/// sysfs does not tell.
std::uint32_t slot_speed(const std::string& folder);

}  // namespace gdrx::verbs
