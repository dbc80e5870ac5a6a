// SPDX-License-Identifier: Apache-2.0
// The PCI vendors of which something is known here, by the ids that the PCI-SIG has given them.
#pragma once

#include <cstdint>

namespace gdrx::topo::vendor {

inline constexpr std::uint16_t kBroadcom = 0x1000;     // its PCIe switches, once LSI's and PLX's
inline constexpr std::uint16_t kAmdGraphics = 0x1002;  // AMD's CPUs are 0x1022
inline constexpr std::uint16_t kIbm = 0x1014;
inline constexpr std::uint16_t kTexas = 0x104c;  // a switch that QEMU models
inline constexpr std::uint16_t kNvidia = 0x10de;
inline constexpr std::uint16_t kMellanox = 0x15b3;  // NVIDIA's NICs, and the switches in them
inline constexpr std::uint16_t kQemu = 0x1b36;      // Red Hat's, of emulated devices
inline constexpr std::uint16_t kAmazon = 0x1d0f;
inline constexpr std::uint16_t kIntel = 0x8086;

}  // namespace gdrx::topo::vendor
