// SPDX-License-Identifier: Apache-2.0
#include "topo/read/field_text.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>

#include "topo/model/pci_vendor.hpp"

namespace gdrx::topo {

std::string_view trim(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

int to_int(std::string_view text, int otherwise) {
  text = trim(text);
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end && !text.empty() ? value : otherwise;
}

std::uint32_t to_hex(std::string_view text) {
  text = trim(text);
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  return error == std::errc{} && stop == end && !text.empty() ? value : 0;
}

double leading_number(std::string_view text) {
  text = trim(text);
  double value = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return error == std::errc{} && value > 0 && value < 1e9 ? value : 0;
}

std::string cpus_of_mask(std::string_view mask) {
  if (mask.size() > 4096) return {};
  std::string list;
  int begin = -1;
  int cpu = 0;
  const auto close = [&](int end) {
    if (begin < 0) return;
    if (!list.empty()) list += ',';
    list += begin == end - 1 ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end - 1);
    begin = -1;
  };
  for (auto digit = mask.rbegin(); digit != mask.rend(); ++digit) {
    if (*digit == ',') continue;
    if (std::isxdigit(static_cast<unsigned char>(*digit)) == 0) return {};
    const std::uint32_t bits = to_hex(std::string_view(&*digit, 1));
    for (unsigned bit = 0; bit < 4; ++bit, ++cpu) {
      const bool set = ((bits >> bit) & 1u) != 0;
      if (set && begin < 0) begin = cpu;
      if (!set) close(cpu);
    }
  }
  close(cpu);
  return list;
}

bool is_gpu_class(std::uint32_t class_code, std::uint16_t of) {
  const std::uint32_t kind = class_code >> 8;
  // 3D and display controllers, AMD's accelerators: a server's own VGA chip (ASPEED, Matrox) is
  // none of these vendors', and Intel's 0x1200 is the neural unit of a laptop.
  const bool nvidia_or_amd = of == vendor::kNvidia || of == vendor::kAmdGraphics;
  return kind == 0x0302 || (nvidia_or_amd && (kind == 0x0300 || kind == 0x1200)) ||
         ((nvidia_or_amd || of == vendor::kIntel) && kind == 0x0380);
}

bool is_bridge_class(std::uint32_t class_code) { return class_code >> 8 == 0x0604; }

}  // namespace gdrx::topo
