// SPDX-License-Identifier: Apache-2.0
// Whom a group waits for, over time: from looks a tenth of a second apart.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "work.hpp"

namespace gdrx_torch {

/// What the thread that watches tells of a group. Empty: nothing new.
struct Seen {
  int group = 0, rank = 0;
  std::string name;       // the group's
  std::vector<int> late;  // whom running calls wait for, told once
  std::string text;       // a line for each of those
  std::string failure;    // why the group has failed, in each look
};

class Watched {
 public:
  /// A look: whom running calls wait for, and how long the oldest has run. True: it is to be told.
  bool look(const std::vector<int>& late, double seconds, Clock::time_point now);
  const std::map<int, double>& waited() const { return waited_; }

 private:
  std::map<int, double> waited_;
  Clock::time_point looked_{};
  Clock::time_point told_at_{};
  std::vector<int> told_;  // the ranks
};

}  // namespace gdrx_torch
