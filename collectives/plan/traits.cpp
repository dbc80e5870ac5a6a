// SPDX-License-Identifier: Apache-2.0
#include "gdrx/traits.hpp"

#include <algorithm>
#include <array>

namespace gdrx::plan {
namespace {

using enum Collective;

// In the order of Collective. A send and a receive have one buffer each, which their call tells.
constexpr std::array<CollectiveTraits, kCollectiveCount> kTraits{{
    {"allReduce", Extent::count, Extent::count, true, false, all_reduce},
    {"reduceScatter", Extent::all, Extent::count, true, false, reduce_scatter},
    {"allGather", Extent::count, Extent::all, false, false, all_gather},
    {"broadcast", Extent::of_root, Extent::count, false, true, broadcast},
    {"reduce", Extent::count, Extent::of_root, true, true, reduce},
    {"barrier", Extent::none, Extent::none, false, false, barrier},
    {"sendRecv", Extent::count, Extent::count, false, false, send_recv},
    {"allToAll", Extent::all, Extent::all, false, false, send_recv},
    {"gather", Extent::count, Extent::all_of_root, false, true, send_recv},
    {"scatter", Extent::all_of_root, Extent::count, false, true, send_recv},
    {"scan", Extent::count, Extent::count, true, false, scan},
    {"exscan", Extent::count, Extent::count, true, false, exscan},
    {"allToAllv", Extent::parts, Extent::parts, false, false, send_recv},
    {"gatherv", Extent::count, Extent::parts_of_root, false, true, send_recv},
    {"scatterv", Extent::parts_of_root, Extent::count, false, true, send_recv},
    {"allGatherv", Extent::count, Extent::parts, false, false, all_gather},
    {"reduceScatterv", Extent::parts, Extent::count, true, false, reduce_scatter},
}};
static_assert(!kTraits.back().name.empty(), "a collective has no row");
constexpr CollectiveTraits kNothing{"unknown collective"};

// "gdrx" and the name, which then begins with a capital letter.
struct Function {
  constexpr explicit Function(std::string_view name) {
    for (const char letter : std::string_view("gdrx")) text[size++] = letter;
    for (const char letter : name) text[size++] = letter;
    char& first = text[4];
    if (first >= 'a' && first <= 'z') first = static_cast<char>(first - 'a' + 'A');
  }
  constexpr Function() = default;
  std::array<char, 32> text{};
  std::size_t size = 0;
};
constexpr auto kFunctions = [] {
  std::array<Function, kCollectiveCount> all{};
  for (std::size_t row = 0; row < all.size(); ++row) all[row] = Function(kTraits[row].name);
  return all;
}();

}  // namespace

const CollectiveTraits& traits_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);  // a peer may have said it
  return row < kTraits.size() ? kTraits[row] : kNothing;
}

std::optional<Collective> collective_of(std::string_view name) noexcept {
  const auto small = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  };
  for (std::size_t row = 0; row < kTraits.size(); ++row) {
    if (std::ranges::equal(kTraits[row].name, name, {}, small, small)) {
      return static_cast<Collective>(row);
    }
  }
  return std::nullopt;
}

std::string_view function_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);
  if (row >= kFunctions.size()) return kNothing.name;
  return {kFunctions[row].text.data(), kFunctions[row].size};
}

}  // namespace gdrx::plan

namespace gdrx {

std::string_view to_string(Collective collective) noexcept {
  return plan::traits_of(collective).name;
}

}  // namespace gdrx
