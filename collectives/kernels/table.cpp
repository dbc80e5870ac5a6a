// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/type_sets.hpp"

namespace gdrx::gpu {

// See CMakeLists.txt.
extern const Launch kLaunchFloat, kLaunchHalf, kLaunchBfloat16, kLaunchAny;
extern const LaunchMove kAddFloat, kAddHalf, kAddBfloat16, kAddAny;

namespace {

template <class T>
T of(const Call& call, T of_float, T of_half, T of_bfloat16, T of_any) {
  return of_call(static_cast<DataType>(call.type), static_cast<ReduceOp>(call.op), call.ranks,
                 of_float, of_half, of_bfloat16, of_any);
}

}  // namespace

Launch launch_of(const Call& call) {
  return of(call, kLaunchFloat, kLaunchHalf, kLaunchBfloat16, kLaunchAny);
}

LaunchMove add_of(const MoveCall& call) {
  return of(call, kAddFloat, kAddHalf, kAddBfloat16, kAddAny);
}

}  // namespace gdrx::gpu
