// SPDX-License-Identifier: Apache-2.0
#include "collectives/trace/event.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <limits>

namespace gdrx::trace {
namespace {

/// As far as there is room. Without fmt, which would be compiled here once more to write to memory
/// that is there already.
struct Text {
  std::span<char, kTitle> into;
  std::size_t length = 0;

  void add(std::string_view text) noexcept {
    const std::size_t fits = std::min(text.size(), into.size() - 1 - length);
    std::copy_n(text.data(), fits, into.data() + length);
    length += fits;
  }
  template <std::integral Number>
  void add(Number number) noexcept {
    std::array<char, std::numeric_limits<Number>::digits10 + 2> digits{};
    const auto [end, error] = std::to_chars(digits.begin(), digits.end(), number);
    add(std::string_view(digits.begin(), end));
  }
};

}  // namespace

std::string_view to_string(Kind kind) noexcept {
  constexpr std::array<std::string_view, kKinds> kNames{"call", "plan", "chunk",
                                                        "step", "wait", "kernel"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view title(const Event& event, std::span<char, kTitle> into) noexcept {
  Text text{into};
  text.add(event.name);
  if (!event.algorithm.empty()) {
    text.add(" ");
    text.add(event.algorithm);
  }
  if (event.kind == Kind::chunk && event.index != kNoIndex) {
    text.add(" ");
    text.add(event.index);
  }
  if (event.peer != kNobody) {
    text.add(" rank ");
    text.add(event.peer);
  }
  into[text.length] = '\0';
  return {into.data(), text.length};
}

}  // namespace gdrx::trace
