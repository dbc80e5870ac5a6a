// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process.
#pragma once

#include <memory>
#include <vector>

#include "gdrx/bootstrap.hpp"

namespace gdrx {

class ThreadBootstrap {
 public:
  /// One a rank, to be used by a thread each.
  static std::vector<std::unique_ptr<Bootstrap>> create_all(int size);
};

}  // namespace gdrx
