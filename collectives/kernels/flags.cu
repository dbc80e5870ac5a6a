// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/enqueue.cuh"
#include "collectives/kernels/flags.cuh"
#include "collectives/kernels/loadable.hpp"
#include "collectives/kernels/stops.hpp"

namespace gdrx::gpu {
namespace {

__global__ void step_flags(const __grid_constant__ Call call, const __grid_constant__ FlagStep step,
                           Flags* flags) {
  Stop stop(call, flags);
  if (stop.is_void()) return;
  if (step.signals != 0) stop.signal(step.signals, step.record);
  if (step.waits_for < 0) return;
  WaitGuard guard(call);
  stop.wait(static_cast<WaitFlag>(step.waits_for), guard);
}

const Loadable kLoadableFlags(step_flags);

}  // namespace

cudaError_t launch_flags(const Call& call, const FlagStep& step, Flags* flags,
                         cudaStream_t stream) {
  return enqueue_alone(step_flags, 1, 1, stream, call, step, flags);
}

}  // namespace gdrx::gpu
