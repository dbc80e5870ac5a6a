// SPDX-License-Identifier: Apache-2.0
#include "gdrx/clock.hpp"

namespace gdrx {

namespace {

/// Made before the program runs, so that a child of a fork never waits for a thread of its parent
/// that was making it; never destroyed, for threads that ask it while the process exits.
union Immortal {
  constexpr Immortal() : clock() {}
  ~Immortal() {}
  SteadyClock clock;
};
constinit Immortal immortal;

}  // namespace

const Clock& steady_clock() noexcept { return immortal.clock; }

}  // namespace gdrx
