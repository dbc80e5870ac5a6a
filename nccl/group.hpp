// SPDX-License-Identifier: Apache-2.0
// What stands in a group and is no collective.
#pragma once

#include <functional>
#include <utility>

#include "nccl/comm.hpp"

namespace gdrx::nccl {

void add_to_group(std::function<Result()> work);
/// Runs `work` when the thread's group ends, at once if none is open. Works of a group wait for
/// each other's ranks: each has a thread then.
template <class Work>
Result when_group_ends(const char* function, Work&& work) noexcept {
  return guarded(function, [&]() -> Result {
    if (group.depth == 0) return work();
    add_to_group(std::forward<Work>(work));
    return kSuccess;
  });
}
/// The group makes the communicator, and has it. If it cannot, the program's handle becomes NULL.
void made_by_group(ncclComm* comm, ncclComm** handle);
/// The thread's group, and what it has for later, is no concern of the communicator any more.
void forget_in_group(ncclComm* comm) noexcept;

}  // namespace gdrx::nccl
