// SPDX-License-Identifier: Apache-2.0
// What a process of many_communicators does on one of its GPUs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "gdrx/gdrx.h"

namespace gdrx::crowd {

inline constexpr int kMostCommunicators = 256;

struct Options {
  int communicators = 3;
  int gpus = 3;
  int processes = 1;
  int rounds = 6;
  std::uint64_t bytes = 1 << 18;
  double timeout_s = 30;
  std::string layout = "all";
  std::string order = "every";
  std::string collective = "every";
  bool graphs = false;
  std::string json;
};

/// What all processes share, zero at first.
struct Board {
  std::atomic<int> ids_made;
  std::atomic<int> finished;  // ranks whose calls have all ended
  std::atomic<int> wrong;     // of their outputs
  std::atomic<int> failed;    // calls
  gdrxUniqueId ids[kMostCommunicators];
};

/// Its ranks of all communicators that have the GPU: what they do is on the board.
void live_on_gpu(const Options& options, int process, int gpu, Board& board);

}  // namespace gdrx::crowd
