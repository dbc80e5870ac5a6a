// SPDX-License-Identifier: Apache-2.0
// Structs of the C API that grow at their end: a program that was compiled with another gdrx.h
// knows less of them, or more.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "gdrx/result.hpp"

namespace gdrx::c_api {

constexpr std::size_t kMostStruct = 1024;

/// `given` as this version knows it: what the caller's does not have is as in `initial`. `first`:
/// the size of the first version. `what`: "config", for people.
template <class Struct>
Result<Struct> in_full(const Struct* given, const Struct& initial, std::size_t first,
                       const char* what, const char* type, const char* initializer) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < first || size > kMostStruct || size % alignof(Struct) != 0) {
    return fail(
        Errc::invalid_argument,
        fmt::format("the {}'s size is not sizeof({}): start from {}", what, type, initializer));
  }
  Struct full = initial;
  std::memcpy(&full, given, std::min(size, sizeof full));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(size, sizeof full), bytes + size,
                  [](unsigned char byte) { return byte != 0; })) {
    return fail(Errc::unsupported,
                fmt::format("the {} asks for what came after this version of gdrx: install the "
                            "libgdrx.so that the program was compiled for",
                            what));
  }
  return full;
}

/// Whether a struct that the caller has and gdrx fills is one of this version or another.
template <class Struct>
bool is_known(const Struct* given, std::size_t first) noexcept {
  return given != nullptr && given->size >= first && given->size <= kMostStruct;
}

template <class Struct>
Result<void> check_struct(const Struct* given, std::size_t first, const char* type) {
  if (is_known(given, first)) return {};
  return fail(Errc::invalid_argument,
              fmt::format("{0} is NULL or its size is not sizeof({0})", type));
}

/// As much of `full` as the caller's has room for: of another version it may have fewer members.
template <class Struct>
void fill(Struct* given, Struct full) noexcept {
  full.size = given->size;
  std::memcpy(given, &full, std::min(given->size, sizeof full));
}

}  // namespace gdrx::c_api
