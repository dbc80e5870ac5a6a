// SPDX-License-Identifier: Apache-2.0
// Rings: rank r receives from r - 1 and sends to r + 1, a chunk a step.
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

// Partial sums live in two scratch chunks in turn, since the input is the caller's. A scratch chunk
// is written again two steps later: its send must have completed.
RankProgram ring_reduce_scatter(std::int32_t n, std::int32_t rank) {
  const std::int32_t next = wrap(rank + 1, n);
  const std::int32_t previous = wrap(rank - 1, n);
  Channel ops;
  for (std::int32_t step = 0; step < n - 1; ++step) {
    const std::int32_t sent = wrap(rank - step - 1, n);
    const std::int32_t received = wrap(rank - step - 2, n);
    const bool last = step == n - 2;
    ops.push_back(send(step == 0 ? in(sent) : scratch((step - 1) % 2, sent), next));
    if (!last && step >= 2) ops.push_back(wait(scratch(step % 2, received)));
    ops.push_back(
        recv_reduce(last ? out(0) : scratch(step % 2, received), in(received), previous, last));
  }
  return one_channel(std::move(ops), n > 2 ? 2 : 0);
}

RankProgram ring_all_gather(std::int32_t n, std::int32_t rank) {
  Channel ops;
  ops.push_back(copy(out(rank), in(0)));
  for (std::int32_t step = 0; step < n - 1; ++step) {
    ops.push_back(send(out(wrap(rank - step, n)), wrap(rank + 1, n)));
    ops.push_back(recv_copy(out(wrap(rank - step - 1, n)), wrap(rank - 1, n)));
  }
  return one_channel(std::move(ops));
}

}  // namespace gdrx::plan::builders
