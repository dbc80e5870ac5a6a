// SPDX-License-Identifier: Apache-2.0
#include "gdrx/traits.hpp"

#include <array>
#include <cctype>

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

}  // namespace

const CollectiveTraits& traits_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);  // a peer may have said it
  return row < kTraits.size() ? kTraits[row] : kNothing;
}

std::string function_of(Collective collective) {
  std::string name(to_string(collective));
  name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
  return "gdrx" + name;
}

}  // namespace gdrx::plan

namespace gdrx {

std::string_view to_string(Collective collective) noexcept {
  return plan::traits_of(collective).name;
}

}  // namespace gdrx
