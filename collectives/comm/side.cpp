// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/side.hpp"

#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {

namespace {

plan::Extent extent_of(const Call& call, bool output) noexcept {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  return output ? traits.output : traits.input;
}

/// Of a buffer without parts.
std::uint64_t elements_of(const Call& call, bool output, int ranks, Rank self) noexcept {
  const bool has = call.collective != Collective::send_recv || call.sends != output;
  if (!has) return 0;
  if (extent_of(call, output) == plan::Extent::leaves) {
    return call.count * static_cast<std::uint64_t>(leaves_of(call, self));
  }
  return plan::elements(extent_of(call, output), own_count(call, self), ranks, call.root == self);
}

}  // namespace

bool has_side(const Call& call, bool output, int ranks, Rank self) noexcept {
  if (!plan::CollectiveTraits::is_parts(extent_of(call, output))) {
    return elements_of(call, output, ranks, self) > 0;
  }
  return gdrx::elements_of(output ? call.parts->receives : call.parts->sends) > 0;
}

Result<Side> side_of(const Call& call, bool output, int ranks, Rank self) {
  if (plan::CollectiveTraits::is_parts(extent_of(call, output))) {
    return Side{GDRX_TRY(output ? runs_of(call.parts->receives, "recvbuff")
                                : runs_of(call.parts->sends, "sendbuff"))};
  }
  return Side{{{0, elements_of(call, output, ranks, self)}}};
}

}  // namespace gdrx
