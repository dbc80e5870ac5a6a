// SPDX-License-Identifier: Apache-2.0
// Numbers and lists as sysfs and topology files write them. What does not parse is "not known".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gdrx/topology.hpp"

namespace gdrx::topo {

std::string_view trim(std::string_view text);
int to_int(std::string_view text, int otherwise);
std::uint32_t to_hex(std::string_view text);      // "0x10de" or "10de"; 0 where it is none
double leading_number(std::string_view text);     // "32.0 GT/s PCIe", "400 Gb/sec (4X NDR)"; or 0
std::string cpus_of_mask(std::string_view mask);  // "00000000,00ffffff" to "0-23"
bool is_gpu_class(std::uint32_t class_code, std::uint16_t of);
bool is_bridge_class(std::uint32_t class_code);

}  // namespace gdrx::topo
