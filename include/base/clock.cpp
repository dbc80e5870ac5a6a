// SPDX-License-Identifier: Apache-2.0
#include "gdrx/clock.hpp"

namespace gdrx {

const Clock& steady_clock() noexcept {
  static const SteadyClock clock;
  return clock;
}

}  // namespace gdrx
