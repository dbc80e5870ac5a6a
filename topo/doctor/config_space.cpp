// SPDX-License-Identifier: Apache-2.0
#include "topo/doctor/config_space.hpp"

#include <fstream>

namespace gdrx::doctor {

ConfigSpace ConfigSpace::read(const topo::HostFiles& files, const std::string& bus) {
  std::ifstream file(files.root() / "sys/bus/pci/devices" / bus / "config", std::ios::binary);
  std::string bytes(4096, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return ConfigSpace(std::move(bytes));
}

std::optional<std::uint16_t> ConfigSpace::word(std::size_t offset) const {
  if (offset + 2 > bytes_.size()) return std::nullopt;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes_[at]); };
  return static_cast<std::uint16_t>(byte(offset) | byte(offset + 1) << 8);
}

std::optional<std::size_t> ConfigSpace::find(std::uint8_t id) const {
  constexpr std::size_t kFirst = 0x34;
  std::size_t at = word(kFirst).value_or(0) & 0xfcu;
  for (int hop = 0; hop < 48 && at >= 0x40; ++hop) {  // a list cannot be longer, a loop is
    const auto head = word(at);
    if (!head) return std::nullopt;
    if ((*head & 0xff) == id) return at;
    at = *head >> 8 & 0xfcu;
  }
  return std::nullopt;
}

std::optional<std::size_t> ConfigSpace::find_extended(std::uint16_t id) const {
  std::size_t at = 0x100;
  for (int hop = 0; hop < 480 && at >= 0x100; ++hop) {
    const auto head = word(at);
    const auto next = word(at + 2);
    if (!head || !next || *head == 0xffff || (*head == 0 && *next == 0)) return std::nullopt;
    if (*head == id) return at;
    at = *next >> 4 & 0xffcu;
  }
  return std::nullopt;
}

}  // namespace gdrx::doctor
