// SPDX-License-Identifier: Apache-2.0
// Which elements a chunk, and a slice of a chunk, cover. Pure arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gdrx/types.hpp"

namespace gdrx::exec {

/// Elements [begin, begin + count) of a buffer.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

/// Elements of a buffer that are for a rank, or from it.
struct Part {
  Rank peer{};
  Range range;
};

/// `elements` cut into `chunks` parts whose lengths differ by one at most, the longer ones first;
/// of several vectors, which lie one behind another, each is cut so. Or as `parts` says, which then
/// are `chunks`, lie anywhere, and outlive this.
struct Partition {
  std::uint64_t elements = 0;  // of a vector
  std::uint32_t chunks = 1;    // of a vector
  const Part* parts = nullptr;
  std::uint32_t vectors = 1;

  Range chunk(std::uint32_t c) const noexcept {
    if (parts != nullptr) return parts[c].range;
    std::uint64_t before = 0;
    if (c >= chunks) {
      before = c / chunks * elements;
      c %= chunks;
    }
    const std::uint64_t base = elements / chunks;
    const std::uint64_t longer = elements % chunks;
    return {before + c * base + std::min<std::uint64_t>(c, longer), base + (c < longer ? 1 : 0)};
  }

  /// Chunks [c, c + count): they lie beside each other, as parts do not.
  Range chunks_from(std::uint32_t c, std::uint32_t count) const noexcept {
    const Range first = chunk(c);
    const Range last = chunk(c + count - 1);
    return {first.begin, last.begin + last.count - first.begin};
  }

  std::uint64_t longest() const noexcept {
    if (parts == nullptr) return elements / chunks + (elements % chunks != 0);
    std::uint64_t most = 0;
    for (std::uint32_t c = 0; c < chunks; ++c) most = std::max(most, parts[c].range.count);
    return most;
  }

  /// Of the buffer, from its beginning.
  std::uint64_t extent() const noexcept {
    if (parts == nullptr) return elements * vectors;
    std::uint64_t end = 0;
    for (std::uint32_t c = 0; c < chunks; ++c) {
      end = std::max(end, parts[c].range.begin + parts[c].range.count);
    }
    return end;
  }

  /// The `slice`-th run of `per_slice` elements of chunk c; empty behind the chunk's end.
  Range slice(std::uint32_t c, std::uint64_t slice, std::uint64_t per_slice) const noexcept {
    const Range whole = chunk(c);
    const std::uint64_t from = std::min(slice * per_slice, whole.count);
    return {whole.begin + from, std::min(per_slice, whole.count - from)};
  }
};

}  // namespace gdrx::exec
