// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/stops.hpp"
#include "collectives/kernels/type_sets.hpp"

namespace gdrx::gpu {

// See CMakeLists.txt.
extern const Launch kLaunchFloat, kLaunchHalf, kLaunchBfloat16, kLaunchAny;
extern const LaunchRelay kRelayFloat, kRelayHalf, kRelayBfloat16, kRelayAny;
extern const LaunchMove kAddFloat, kAddHalf, kAddBfloat16, kAddAny;

Launch launch_of(DataType type) {
  return of_type(type, kLaunchFloat, kLaunchHalf, kLaunchBfloat16, kLaunchAny);
}

LaunchRelay relay_of(DataType type) {
  return of_type(type, kRelayFloat, kRelayHalf, kRelayBfloat16, kRelayAny);
}

LaunchMove add_of(DataType type) {
  return of_type(type, kAddFloat, kAddHalf, kAddBfloat16, kAddAny);
}

}  // namespace gdrx::gpu
