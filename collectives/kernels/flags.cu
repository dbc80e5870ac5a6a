// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/wait.cuh"

namespace gdrx::gpu {
namespace {

// After a kernel that gave up it tells nothing: the network would take for data what was not
// received.
__global__ void step_flags(const __grid_constant__ Call call, const __grid_constant__ FlagStep step,
                           Flags* flags) {
  if (reinterpret_cast<const volatile Control*>(control_of(call, call.rank))->aborted != 0) return;
  if (step.tells >= 0) {
    if (step.tells == static_cast<std::int32_t>(Told::begun)) flags->record = step.record;
    std::uint64_t* told = flags->told + step.tells;
    fence_system();
    store_shared(told, *told + 1);
  }
  if (step.awaits < 0) return;
  const std::uint64_t wanted = flags->taken[step.awaits] + 1;
  Patience patience(call);
  while (load_acquired(flags->allowed + step.awaits) < wanted &&
         patience.more(call.rank, Stage::entering, 0)) {  // without a deadline: nobody is told
  }
  flags->taken[step.awaits] = wanted;
}

}  // namespace

cudaError_t launch_flags(const Call& call, const FlagStep& step, Flags* flags,
                         cudaStream_t stream) {
  return enqueue_alone(step_flags, 1, 1, stream, call, step, flags);
}

}  // namespace gdrx::gpu
