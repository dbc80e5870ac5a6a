// SPDX-License-Identifier: Apache-2.0
// What a collective is, a row each: what else has to know of collectives reads it here. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gdrx/types.hpp"

namespace gdrx::plan {

/// How many elements a buffer of a call has.
enum class Extent : std::uint8_t {
  none,
  count,          // the call's
  all,            // the call's times the ranks: a block for each, in their order
  of_root,        // the call's on the root; elsewhere there is no such buffer
  all_of_root,    // of both
  parts,          // a part for each rank, as the call says
  parts_of_root,  // on the root alone
  leaves,         // the call's for each leaf that the rank holds, as the call says
};

struct CollectiveTraits {
  std::string_view name;  // "allReduce"
  Extent input{};
  Extent output{};
  bool reduces = false;  // has an operator
  bool rooted = false;   // has a root
  /// Whose plans run it. send_recv: it has none, and is a message between each two ranks that have
  /// something for each other.
  Collective plans = Collective::send_recv;
  bool prefix = false;  // reduces over the ranks before, in their order: it has no avg

  /// Blocks of `count` in the longer of its buffers: those of the vector that all ranks have in
  /// mind.
  constexpr bool has_blocks() const noexcept { return is_all(input) || is_all(output); }
  /// A message between each two ranks.
  constexpr bool by_messages() const noexcept { return plans == Collective::send_recv; }
  /// Its ranks' parts differ.
  constexpr bool has_parts() const noexcept { return is_parts(input) || is_parts(output); }

  /// Its ranks hold a vector for each of their leaves.
  constexpr bool has_leaves() const noexcept { return input == Extent::leaves; }

  static constexpr bool is_all(Extent extent) noexcept {
    return extent == Extent::all || extent == Extent::all_of_root;
  }
  static constexpr bool is_parts(Extent extent) noexcept {
    return extent == Extent::parts || extent == Extent::parts_of_root;
  }
};

const CollectiveTraits& traits_of(Collective collective) noexcept;
/// By its name, capitals or not.
std::optional<Collective> collective_of(std::string_view name) noexcept;
/// "gdrxAllReduce": of the C API. A send and a receive have a function each.
std::string_view function_of(Collective collective) noexcept;

/// Of a call of `count` elements among `ranks` on a rank that is its root, or not. Of parts and
/// leaves: 0, only the call knows them.
constexpr std::uint64_t elements(Extent extent, std::uint64_t count, int ranks,
                                 bool root) noexcept {
  switch (extent) {
    case Extent::none:
    case Extent::parts:
    case Extent::parts_of_root:
    case Extent::leaves:
      return 0;
    case Extent::count:
      return count;
    case Extent::all:
      return count * static_cast<std::uint64_t>(ranks);
    case Extent::of_root:
      return root ? count : 0;
    case Extent::all_of_root:
      return root ? count * static_cast<std::uint64_t>(ranks) : 0;
  }
  return 0;
}

/// Of the vector that all ranks have in mind.
constexpr std::uint64_t vector_elements(const CollectiveTraits& traits, std::uint64_t count,
                                        int ranks) noexcept {
  return elements(traits.has_blocks() ? Extent::all : Extent::count, count, ranks, true);
}

}  // namespace gdrx::plan

namespace gdrx {

std::string_view to_string(Collective collective) noexcept;  // "allReduce"

}  // namespace gdrx
