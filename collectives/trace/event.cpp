// SPDX-License-Identifier: Apache-2.0
#include "collectives/trace/event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gdrx::trace {
namespace {

struct Text {
  std::span<char, kTitle> into;
  std::size_t length = 0;

  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    const std::size_t room = into.size() - 1 - length;
    const auto wrote =
        fmt::format_to_n(into.data() + length, room, format, std::forward<Values>(values)...);
    length += std::min(wrote.size, room);
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
  text.add("{}", event.name);
  if (!event.algorithm.empty()) text.add(" {}", event.algorithm);
  if (event.kind == Kind::chunk && event.index != kNoIndex) text.add(" {}", event.index);
  if (event.peer != kNobody) text.add(" rank {}", event.peer);
  into[text.length] = '\0';
  return {into.data(), text.length};
}

}  // namespace gdrx::trace
