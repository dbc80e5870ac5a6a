// SPDX-License-Identifier: Apache-2.0
// What a group has done, and for whom it has waited: that from looks a tenth of a second apart.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "work.hpp"

namespace gdrx_torch {

/// Whom the calls that run wait for.
struct Waits {
  std::vector<int> late;        // the ranks
  int running = 0, behind = 0;  // calls; behind: that wait for those to end
  double seconds = 0;           // for which the oldest has run
  std::string text;             // a line for each running call
  void add(const Waits& others);
};
/// Of a communicator of so many ranks. Empty: who drives it has no time to answer.
Waits waits_of(gdrxComm_t comm, int ranks);

/// What the thread that watches tells of a group. Empty: nothing new.
struct Seen {
  int group = 0, rank = 0;
  std::string name;       // the group's
  std::vector<int> late;  // whom running calls wait for, told once
  std::string text;       // a line for each of those
  std::string failure;    // why the group has failed, in each look
};

class Account {
 public:
  void begin(const Call& call) { calls_[call.title].add(call); }
  void end(const Call& call, double seconds) { calls_[call.title].seconds += seconds; }
  /// By the name that a profiler shows.
  const std::map<std::string, Counted>& calls() const { return calls_; }
  /// A look: whom running calls wait for, and how long the oldest has run. True: it is to be told.
  bool look(const std::vector<int>& late, double seconds, Clock::time_point now);
  const std::map<int, double>& waited() const { return waited_; }
  /// The group ends as its user wants: that is no failure.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

 private:
  std::map<std::string, Counted> calls_;
  std::map<int, double> waited_;
  Clock::time_point looked_{};
  Clock::time_point told_at_{};
  std::vector<int> told_;  // the ranks
  bool closed_ = false;
};

}  // namespace gdrx_torch
