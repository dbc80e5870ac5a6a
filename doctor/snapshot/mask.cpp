// SPDX-License-Identifier: Apache-2.0
#include "doctor/snapshot/mask.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "doctor/checks/config_space.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::doctor {

std::string Mask::gid(const std::string& text) {
  constexpr std::size_t kLength = 39;  // eight groups of four digits
  constexpr std::string_view kMapped = "0000:0000:0000:0000:0000:ffff:";
  if (text.size() != kLength || text.find_first_not_of("0:") == text.npos) return text;
  const std::size_t host = number("host " + text) & 0xffffu;
  if (text.starts_with(kMapped)) {
    // 10.0.N.M: N for each /24, whatever the real mask, M for each address.
    const std::size_t net = number("net " + text.substr(0, kLength - 2)) & 0xffu;
    return fmt::format("{}0a00:{:02x}{:02x}", kMapped, net, 1 + host % 254);
  }
  const bool local = text.starts_with("fe80");
  const std::size_t net = local ? 0 : number("net " + text.substr(0, 19)) & 0xffffu;
  return fmt::format("{}:0000:0000:{:04x}:0000:0000:0000:{:04x}", local ? "fe80" : "2001", net,
                     host);
}

std::string Mask::name(std::string text) {
  constexpr std::size_t kAddress = 12;  // digits of a MAC; a GUID has 16
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    if (end - at >= kAddress) {
      const std::string run = text.substr(at, end - at);
      text.replace(at, run.size(), fmt::format("{:0{}x}", number("name " + run), run.size()));
    }
    at = end + 1;
  }
  return text;
}

std::string Mask::lid(const std::string& text) {
  const std::uint32_t real = topo::to_hex(text);
  if (real == 0 || real == 0xffff) return text;
  return fmt::format("0x{:x}", number(fmt::format("lid {}", real)) & 0x7fffu);
}

std::string Mask::vpd(const std::string& card) {
  if (card.empty()) return {};
  const std::string name = fmt::format("card {}", number("card " + card));
  std::string field = "V3";
  field += static_cast<char>(name.size());
  field += name;
  std::string text = "\x90";
  text += static_cast<char>(field.size());
  text += '\0';
  return text + field + "\x78";
}

std::string Mask::config(std::string bytes) {
  constexpr std::uint16_t kSerialNumber = 0x0003;
  constexpr std::uint8_t kVitalProductData = 0x03;
  const ConfigSpace space(bytes);
  const auto clear = [&](std::size_t at, std::size_t length) {
    for (std::size_t i = at; i < std::min(bytes.size(), at + length); ++i) bytes[i] = '\0';
  };
  if (const auto at = space.find_extended(kSerialNumber)) clear(*at + 4, 8);
  if (const auto at = space.find(kVitalProductData)) clear(*at + 4, 4);
  return bytes;
}

std::string Mask::command_line(std::string_view text) {
  constexpr std::array kKept{"iommu",
                             "intel_iommu",
                             "amd_iommu",
                             "pci",
                             "pcie_aspm",
                             "pcie_ports",
                             "pcie_acs_override",
                             "numa_balancing",
                             "default_hugepagesz",
                             "hugepages",
                             "hugepagesz"};
  std::istringstream words{std::string(text)};
  std::string kept;
  for (std::string word; words >> word;) {
    const std::string name = word.substr(0, word.find('='));
    if (std::find(kKept.begin(), kKept.end(), name) == kKept.end()) continue;
    kept += (kept.empty() ? "" : " ") + word;
  }
  return kept;
}

}  // namespace gdrx::doctor
