// SPDX-License-Identifier: Apache-2.0
// A PCI function's configuration space, as sysfs gives it: 64 bytes, or as root all 4096.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topo/read/host_files.hpp"

namespace gdrx::doctor {

class ConfigSpace {
 public:
  static ConfigSpace read(const topo::HostFiles& files, const std::string& bus);
  explicit ConfigSpace(std::string bytes) : bytes_(std::move(bytes)) {}

  /// False: only the first 64 bytes, as for everybody but root.
  bool has_capabilities() const { return bytes_.size() >= 256; }
  bool has_extended() const { return bytes_.size() > 256; }
  std::optional<std::uint16_t> word(std::size_t offset) const;
  /// Offset of a capability, by walking the list; it differs from device to device.
  std::optional<std::size_t> find(std::uint8_t id) const;
  std::optional<std::size_t> find_extended(std::uint16_t id) const;

 private:
  std::string bytes_;
};

}  // namespace gdrx::doctor
