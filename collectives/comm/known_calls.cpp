// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/known_calls.hpp"

#include "gdrx/traits.hpp"

namespace gdrx {

Bounds bounds_of(const Call& call, Rank self, int ranks) noexcept {
  const plan::CollectiveTraits& traits = plan::traits_of(call.collective);
  const bool is_root = call.root == self;
  const std::size_t element = size_of(call.type);
  Bounds bounds{plan::elements(traits.input, call.count, ranks, is_root) * element,
                plan::elements(traits.output, call.count, ranks, is_root) * element};
  // The shorter buffer is this rank's block of the longer, if the longer alone has blocks.
  const bool blocks =
      plan::CollectiveTraits::is_all(traits.input) != plan::CollectiveTraits::is_all(traits.output);
  if (!blocks) return bounds;
  const auto block =
      static_cast<std::int64_t>(call.count * static_cast<std::uint64_t>(index(self)) * element);
  bounds.in_place = bounds.input > bounds.output ? -block : block;
  return bounds;
}

}  // namespace gdrx
