// SPDX-License-Identifier: Apache-2.0
#include "gdrx/traits.hpp"

#include <array>

namespace gdrx::plan {
namespace {

// In the order of Collective. A send and a receive have one buffer each, which their call tells.
constexpr std::array<CollectiveTraits, kCollectiveCount> kTraits{{
    {"gdrxAllReduce", Extent::count, Extent::count, true, false},
    {"gdrxReduceScatter", Extent::all, Extent::count, true, false},
    {"gdrxAllGather", Extent::count, Extent::all, false, false},
    {"gdrxBroadcast", Extent::of_root, Extent::count, false, true},
    {"gdrxReduce", Extent::count, Extent::of_root, true, true},
    {"gdrxBarrier", Extent::none, Extent::none, false, false},
    {"gdrxSend or gdrxRecv", Extent::count, Extent::count, false, false},
}};
constexpr CollectiveTraits kNothing{"?"};

}  // namespace

const CollectiveTraits& traits_of(Collective collective) noexcept {
  const auto row = static_cast<std::size_t>(collective);  // a peer may have said it
  return row < kTraits.size() ? kTraits[row] : kNothing;
}

}  // namespace gdrx::plan
