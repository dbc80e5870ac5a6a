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

/// `given` as this version knows it: what the caller's does not have is as in `initial`. `first`:
/// the size of the first version. `what`: "config", for people.
template <class Struct>
Result<Struct> in_full(const Struct* given, const Struct& initial, std::size_t first,
                       const char* what, const char* type, const char* initializer) {
  constexpr std::size_t kMost = 1024;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < first || size > kMost || size % alignof(Struct) != 0) {
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

}  // namespace gdrx::c_api
