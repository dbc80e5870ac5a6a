// SPDX-License-Identifier: Apache-2.0
// The calls of an open group, and those of them that can be done at once when it ends.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "collectives/api/c_state.hpp"

namespace gdrx::c_api {

/// A call between gdrxGroupStart and gdrxGroupEnd.
struct Pending {
  gdrxComm* comm = nullptr;
  Call call;
  gdrxRequest_t* request = nullptr;
  bool wait = false;
  bool stream_ordered = false;  // nobody waits for it but the stream
  bool message = false;         // that starts with all others of its communicator
  bool done = false;            // at once
  std::shared_ptr<Operation> operation;
  StreamPatience patience;  // of who waits for it
};

inline constexpr std::size_t kMostAtOnce = 16;

/// Sends and receives that are all waited for, of one communicator.
/// First the sends, for which nobody need come. What cannot be done at once, and what is behind it,
/// stays: messages keep their order.
inline void run_at_once(std::vector<Pending>& posted) {
  const auto may_be = [&](const Pending& entry) {
    return entry.wait && !entry.message && entry.call.collective == Collective::send_recv &&
           entry.call.stream == nullptr && entry.comm == posted.front().comm;
  };
  if (posted.empty() || posted.size() > kMostAtOnce ||
      !std::all_of(posted.begin(), posted.end(), may_be)) {
    return;
  }
  std::array<const Call*, kMostAtOnce> calls{};
  std::array<Pending*, kMostAtOnce> entries{};
  std::size_t count = 0;
  for (const bool sends : {true, false}) {
    for (Pending& entry : posted) {
      if (entry.call.sends != sends) continue;
      calls[count] = &entry.call;
      entries[count++] = &entry;
    }
  }
  const std::size_t done = posted.front().comm->impl->run_at_once(std::span(calls).first(count));
  for (std::size_t i = 0; i < done; ++i) entries[i]->done = true;
  std::erase_if(posted, [](const Pending& entry) { return entry.done; });
}

/// Which of a group's calls are messages that start together.
void find_messages(std::vector<Pending>& posted);
/// Those of one communicator, in the order of their calls.
Result<void> start_messages(std::vector<Pending>& posted, gdrxComm* comm);
std::vector<gdrxComm*> with_messages(const std::vector<Pending>& posted);
/// Of all of them, one call after another and the messages of a communicator together.
double predicted_us(const std::vector<Pending>& calls);

}  // namespace gdrx::c_api
