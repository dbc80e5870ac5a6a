// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/stops.hpp"

namespace gdrx::gpu {

// See CMakeLists.txt.
extern const Launch kLaunchFloat, kLaunchHalf, kLaunchBfloat16, kLaunchAny;
extern const LaunchRelay kRelayFloat, kRelayHalf, kRelayBfloat16, kRelayAny;

Launch launch_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return kLaunchFloat;
    case DataType::float16:
      return kLaunchHalf;
    case DataType::bfloat16:
      return kLaunchBfloat16;
    default:
      return kLaunchAny;
  }
}

LaunchRelay relay_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return kRelayFloat;
    case DataType::float16:
      return kRelayHalf;
    case DataType::bfloat16:
      return kRelayBfloat16;
    default:
      return kRelayAny;
  }
}

}  // namespace gdrx::gpu
