// SPDX-License-Identifier: Apache-2.0
// What a plan costs on a network, in closed form. Pure.
#pragma once

#include "gdrx/plan.hpp"

namespace gdrx::plan {

struct Effort {
  double hops;     // messages one after another
  double moved;    // bytes sent by the busiest rank, in vectors
  double reduced;  // bytes added, in vectors
};

/// Of `ranks` ranks. Nothing where there is no such plan.
Effort effort_of(Collective collective, Algorithm algorithm, int ranks) noexcept;

}  // namespace gdrx::plan
