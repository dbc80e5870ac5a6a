// SPDX-License-Identifier: Apache-2.0
// For whom a communicator's calls wait, as a program asks.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "gdrx/gdrx_look.h"

namespace gdrx::test {

/// gdrxCommGetWaiting with room for all.
struct Look {
  explicit Look(gdrxComm_t comm) {
    waiting.size = sizeof waiting;
    waiting.ranks = ranks.data();
    waiting.rank_capacity = static_cast<int>(ranks.size());
    waiting.text = text.data();
    waiting.text_capacity = text.size();
    result = gdrxCommGetWaiting(comm, &waiting);
  }
  std::vector<int> late() const { return {ranks.begin(), ranks.begin() + waiting.rank_count}; }
  std::string said() const { return text.data(); }

  std::array<int, 8> ranks{};
  std::array<char, 1000> text{};
  gdrxWaiting_t waiting{};
  gdrxResult_t result = gdrxInternalError;
};

}  // namespace gdrx::test
