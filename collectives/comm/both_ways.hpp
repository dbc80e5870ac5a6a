// SPDX-License-Identifier: Apache-2.0
// How much a rank has for others, and gets from them.
#pragma once

#include <algorithm>

#include "gdrx/types.hpp"

namespace gdrx {

struct BothWays {
  Bytes out = 0, in = 0;  // not to and from itself
  bool gpu = false;       // by kernels of one host

  /// Of what goes both ways at once.
  Bytes longest() const noexcept { return std::max(out, in); }
};

}  // namespace gdrx
