// SPDX-License-Identifier: Apache-2.0
#include "gdrx/traits.hpp"

#include <array>

namespace gdrx::plan {
namespace {

using enum Collective;

// In the order of Collective. A send and a receive have one buffer each, which their call tells.
constexpr std::array<CollectiveTraits, kCollectiveCount> kTraits{{
    {"gdrxAllReduce", Extent::count, Extent::count, true, false, all_reduce},
    {"gdrxReduceScatter", Extent::all, Extent::count, true, false, reduce_scatter},
    {"gdrxAllGather", Extent::count, Extent::all, false, false, all_gather},
    {"gdrxBroadcast", Extent::of_root, Extent::count, false, true, broadcast},
    {"gdrxReduce", Extent::count, Extent::of_root, true, true, reduce},
    {"gdrxBarrier", Extent::none, Extent::none, false, false, barrier},
    {"gdrxSend or gdrxRecv", Extent::count, Extent::count, false, false, send_recv},
    {"gdrxAllToAll", Extent::all, Extent::all, false, false, send_recv},
    {"gdrxGather", Extent::count, Extent::all_of_root, false, true, send_recv},
    {"gdrxScatter", Extent::all_of_root, Extent::count, false, true, send_recv},
    {"gdrxScan", Extent::count, Extent::count, true, false, scan},
    {"gdrxExscan", Extent::count, Extent::count, true, false, exscan},
    {"gdrxAllToAllv", Extent::parts, Extent::parts, false, false, send_recv},
    {"gdrxGatherv", Extent::count, Extent::parts_of_root, false, true, send_recv},
    {"gdrxScatterv", Extent::parts_of_root, Extent::count, false, true, send_recv},
    {"gdrxAllGatherv", Extent::count, Extent::parts, false, false, all_gather},
    {"gdrxReduceScatterv", Extent::parts, Extent::count, true, false, reduce_scatter},
}};
constexpr CollectiveTraits kNothing{"?"};

}  // namespace

const CollectiveTraits& traits_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);  // a peer may have said it
  return row < kTraits.size() ? kTraits[row] : kNothing;
}

}  // namespace gdrx::plan
