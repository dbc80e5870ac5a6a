// SPDX-License-Identifier: Apache-2.0
// What a communicator of ranks that have one already takes over instead of trying it again. The
// same on all of its ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

struct Heritage {
  bool memory = false;     // its ranks share memory: messages and the arena are there
  bool processes = false;  // and write each other's
  /// Tells all of them what each of them says, as the mesh does, but faster. Once. None: the mesh.
  std::function<Result<std::vector<Blob>>(std::span<const std::byte> mine)> tell{};

  /// As a number for those who carry it, and back.
  std::uint32_t facts() const noexcept { return (memory ? 1U : 0U) | (processes ? 2U : 0U); }
  static Heritage of(std::uint32_t facts) noexcept {
    return {(facts & 1U) != 0, (facts & 3U) == 3U, {}};
  }
};

}  // namespace gdrx
