// SPDX-License-Identifier: Apache-2.0
// What a communicator that is split from another takes over instead of trying it again. The same on
// all of its ranks.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

struct Heritage {
  bool memory = false;     // its ranks share memory: messages and the arena are there
  bool processes = false;  // and write each other's
  /// With memory: tells all of them what each of them says, as the mesh does, but faster. Once.
  std::function<Result<std::vector<Blob>>(std::span<const std::byte> mine)> tell{};
};

}  // namespace gdrx
