// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

namespace gdrx {

std::string printable(std::string_view text, char instead) {
  std::string safe(text);
  const auto byte = [&](std::size_t at) {
    return at < safe.size() ? static_cast<unsigned char>(safe[at]) : 0u;
  };
  for (std::size_t i = 0; i < safe.size(); ++i) {
    const bool two_bytes = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;
    if (two_bytes) safe[i + 1] = instead;
    if (two_bytes || byte(i) < 0x20 || byte(i) == 0x7f) safe[i] = instead;
  }
  return safe;
}

std::string printable(std::span<const std::byte> bytes) {
  return printable(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string printable_ascii(std::string_view text) {
  std::string safe(text);
  for (char& c : safe) {
    if (c < ' ' || c > '~') c = '?';
  }
  return safe;
}

}  // namespace gdrx
