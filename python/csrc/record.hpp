// SPDX-License-Identifier: Apache-2.0
// The last calls of this process, for whoever looks when a job hangs. gdrx/flight.py writes them as
// PyTorch's flight recorder does.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "work.hpp"

namespace gdrx_torch {

/// A message's other rank.
struct Peer {
  static constexpr int kNone = -1, kAny = -2;
  int rank = kNone;
  bool sends = false;
};

struct Recorded {
  std::uint64_t number = 0;  // among all of the process, from 1
  int group = 0;
  std::uint64_t sequence = 0;  // among the collectives, or the messages, of its group
  const char* title = "";
  Peer peer;
  bool on_gpu = false;
  // A tensor has `dims[i]` of the sizes; the first `inputs` of them are inputs.
  c10::SmallVector<std::int64_t, 4> sizes;
  c10::SmallVector<std::uint8_t, 4> dims;
  c10::SmallVector<c10::ScalarType, 4> types;
  std::size_t inputs = 0;
  std::int64_t created = 0, ended = 0;  // ns since 1970; 0: not yet. Of a GPU's nobody sees the end
  std::int64_t timeout = 0;             // ms
  bool failed = false;
};

struct RecordedGroup {
  int rank = 0;  // of this process
  bool ended = false;
  std::uint64_t messages = 0, last = 0;  // last: the number of its latest call
  std::string name;
  std::vector<std::uint64_t> ranks;  // of the job, in the order of the group's
};

/// Any thread.
class Record {
 public:
  static Record& of_process();

  int add_group(int rank, int size);
  /// It is of no more use; its calls stay for a while.
  void end_group(int group);
  std::string name_of(int group);
  void name_group(int group, std::string name, std::vector<std::uint64_t> ranks);
  /// The call's number, for its end; 0: nothing is recorded. `sequence`: among collectives;
  /// messages are counted here.
  std::uint64_t begin(int group, const Call& call, std::uint64_t sequence, Peer peer, bool on_gpu);
  /// `source`: of a message that was received, or negative.
  void end(std::uint64_t number, int source, bool failed);
  /// In the order in which they were made.
  std::vector<Recorded> calls();
  std::map<int, RecordedGroup> groups();

 private:
  Record();

  std::mutex lock_;
  std::vector<Recorded> ring_;
  std::uint64_t made_ = 0;
  int next_group_ = 0;
  std::map<int, RecordedGroup> groups_;
};

}  // namespace gdrx_torch
