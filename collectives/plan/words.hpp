// SPDX-License-Identifier: Apache-2.0
// The names of ops and buffers, in text and in JSON.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "gdrx/plan.hpp"

namespace gdrx::plan {

/// Of the JSON form: a reader refuses any other.
inline constexpr std::uint32_t kJsonVersion = 1;
inline constexpr std::array<std::string_view, 6> kOpNames{"send", "recv_copy", "recv_reduce",
                                                          "copy", "reduce",    "wait"};
inline constexpr std::array<std::string_view, 3> kBufferNames{"input", "output", "scratch"};

inline std::string_view name_of(OpKind kind) { return kOpNames.at(static_cast<std::size_t>(kind)); }
inline std::string_view name_of(Buffer buffer) {
  return kBufferNames.at(static_cast<std::size_t>(buffer));
}

/// The value of E that stands in `names` under `name`.
template <class E, std::size_t N>
std::optional<E> find_name(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names.at(i) == name) return static_cast<E>(i);
  }
  return std::nullopt;
}

/// Which operands an op has: the others stand at their defaults.
inline bool has_peer(OpKind kind) {
  return kind == OpKind::send || kind == OpKind::recv_copy || kind == OpKind::recv_reduce;
}
inline bool has_source(OpKind kind) { return kind != OpKind::recv_copy; }
inline bool has_target(OpKind kind) { return kind != OpKind::send && kind != OpKind::wait; }

}  // namespace gdrx::plan
