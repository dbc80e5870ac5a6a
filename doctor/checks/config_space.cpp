// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/config_space.hpp"

#include <filesystem>

namespace gdrx::doctor {

ConfigSpace ConfigSpace::read(const topo::HostFiles& files, const std::string& bus) {
  std::string bytes =
      files.bytes(std::filesystem::path("sys/bus/pci/devices") / bus / "config", 4096);
  // A copy by tar has 4096 bytes also where only 64 could be read: the rest is zero, which no PCI
  // Express function is.
  constexpr std::size_t kPublic = 64;
  if (bytes.size() > kPublic && bytes.find_first_not_of('\0', kPublic) == bytes.npos) {
    bytes.resize(kPublic);
  }
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
