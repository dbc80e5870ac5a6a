// SPDX-License-Identifier: Apache-2.0
#include "collectives/kernels/launch.hpp"
#include "collectives/kernels/stops.hpp"

namespace gdrx::gpu {

// One a DataType, in its order; see CMakeLists.txt.
extern const Launch kLaunch0, kLaunch1, kLaunch2, kLaunch3, kLaunch4, kLaunch5, kLaunch6, kLaunch7,
    kLaunch8, kLaunch9, kLaunch10, kLaunch11;
extern const LaunchRelay kRelay0, kRelay1, kRelay2, kRelay3, kRelay4, kRelay5, kRelay6, kRelay7,
    kRelay8, kRelay9, kRelay10, kRelay11;

const std::array<Launch, kDataTypeCount>& launches() {
  static const std::array<Launch, kDataTypeCount> table{kLaunch0, kLaunch1, kLaunch2,  kLaunch3,
                                                        kLaunch4, kLaunch5, kLaunch6,  kLaunch7,
                                                        kLaunch8, kLaunch9, kLaunch10, kLaunch11};
  return table;
}

const std::array<LaunchRelay, kDataTypeCount>& relays() {
  static const std::array<LaunchRelay, kDataTypeCount> table{kRelay0, kRelay1, kRelay2,  kRelay3,
                                                             kRelay4, kRelay5, kRelay6,  kRelay7,
                                                             kRelay8, kRelay9, kRelay10, kRelay11};
  return table;
}

}  // namespace gdrx::gpu
