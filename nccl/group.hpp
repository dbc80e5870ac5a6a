// SPDX-License-Identifier: Apache-2.0
// What stands in a group and is no collective.
#pragma once

#include <functional>
#include <utility>

#include "nccl/comm.hpp"

namespace gdrx::nccl {

/// What a group does for a communicator at its end.
struct Later {
  ncclComm* comm = nullptr;
  bool ends = false;  // the communicator is gone then
  std::function<Result()> run;
  bool held = true;  // the communicator, for this
};

void run_later(Later work);
/// Runs `work` when the thread's group ends, at once if none is open. Those of one communicator run
/// in the order of their calls; those of several wait for each other's ranks, and each communicator
/// has a thread then.
template <class Work>
Result when_group_ends(const char* function, ncclComm* comm, Work&& work,
                       bool ends = false) noexcept {
  return guarded(function, [&]() -> Result {
    if (group.depth == 0) return work();
    run_later({comm, ends, std::forward<Work>(work)});
    return kSuccess;
  });
}
/// The group makes the communicator, and has it. If it cannot, the program's handle becomes NULL.
void made_by_group(ncclComm* comm, ncclComm** handle);
/// The thread's group, and what it has for later, is no concern of the communicator any more.
void forget_in_group(ncclComm* comm) noexcept;

}  // namespace gdrx::nccl
