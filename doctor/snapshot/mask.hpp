// SPDX-License-Identifier: Apache-2.0
// Replaces what tells one machine from another, the same by the same: addresses that share a
// subnet still do, two functions of a card still have its one number.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gdrx::doctor {

class Mask {
 public:
  /// "fe80:0000:...:0001", an IPv4-mapped or an IPv6 address, as sysfs writes a GID.
  std::string gid(const std::string& text);
  /// A device's name, or a path of such: an address in it ("enx0c42a1000001") becomes a number.
  std::string name(std::string text);
  /// "0x0012": a number, but for "none" (0) and "permissive" (0xffff).
  std::string lid(const std::string& text);
  /// Product data: nothing is left but a number for the card, where it had one.
  std::string vpd(const std::string& card);
  /// A configuration space without its serial number.
  static std::string config(std::string bytes);
  /// Of a kernel's command line: only what concerns PCIe and the IOMMU.
  static std::string command_line(std::string_view text);

 private:
  std::size_t number(const std::string& what) {
    return numbers_.try_emplace(what, numbers_.size() + 1).first->second;
  }
  std::map<std::string, std::size_t> numbers_;
};

}  // namespace gdrx::doctor
