// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/side.hpp"

#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"

namespace gdrx {

Result<Side> side_of(const Call& call, bool output, int ranks, Rank self) {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const plan::Extent extent = output ? traits.output : traits.input;
  if (plan::CollectiveTraits::is_parts(extent)) {
    return Side{GDRX_TRY(output ? runs_of(call.parts->receives, "recvbuff")
                                : runs_of(call.parts->sends, "sendbuff"))};
  }
  const bool pair = call.collective == Collective::send_recv;
  const bool has = !pair || call.sends != output;
  const std::uint64_t count =
      has ? plan::elements(extent, own_count(call, self), ranks, call.root == self) : 0;
  return Side{{{0, count}}};
}

}  // namespace gdrx
