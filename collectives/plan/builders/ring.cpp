// SPDX-License-Identifier: Apache-2.0
// allReduce in a ring: rank r receives from r - 1 and sends to r + 1, a chunk a step.
#include "collectives/plan/builders/builders.hpp"

namespace gdrx::plan::builders {

// Reduce-scatter leaves chunk r + 1 complete on rank r, all-gather passes complete chunks on. A
// complete chunk comes back only after everybody has used the partial one: no wait is needed.
RankProgram ring_all_reduce(std::int32_t n, std::int32_t rank) {
  const std::int32_t next = wrap(rank + 1, n);
  const std::int32_t previous = wrap(rank - 1, n);
  Channel ops;
  ops.reserve(4 * static_cast<std::size_t>(n));
  for (std::int32_t step = 0; step < n - 1; ++step) {
    const std::int32_t sent = wrap(rank - step, n);
    const std::int32_t received = wrap(rank - step - 1, n);
    ops.push_back(send(step == 0 ? in(sent) : out(sent), next));
    ops.push_back(recv_reduce(out(received), in(received), previous, step == n - 2));
  }
  for (std::int32_t step = 0; step < n - 1; ++step) {
    ops.push_back(send(out(wrap(rank + 1 - step, n)), next));
    ops.push_back(recv_copy(out(wrap(rank - step, n)), previous));
  }
  return one_channel(std::move(ops));
}

}  // namespace gdrx::plan::builders
