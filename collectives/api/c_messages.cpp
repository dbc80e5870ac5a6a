// SPDX-License-Identifier: Apache-2.0
// The sends and receives of a group.
#include <algorithm>
#include <utility>
#include <vector>

#include "collectives/api/c_pending.hpp"

namespace gdrx::c_api {
namespace {

// What a rank sends to itself needs its receive in the same group, else the host carries it.
void match_own(std::vector<Pending>& posted, const gdrxComm* comm) {
  int unmatched = 0;
  for (const Pending& entry : posted) {
    if (entry.comm != comm || !comm->impl->keeps_own(entry.call)) continue;
    unmatched += entry.call.sends ? 1 : -1;
  }
  if (unmatched != 0) return;
  for (Pending& entry : posted) {
    if (entry.comm != comm || !comm->impl->keeps_own(entry.call)) continue;
    entry.message = true;
    entry.stream_ordered = entry.request == nullptr;
    entry.wait = false;
  }
}

// Where messages of any memory keep one order, all of a group go in their streams, or none.
void keep_order(std::vector<Pending>& posted) {
  for (const Pending& entry : posted) {
    const gdrxComm* const comm = entry.comm;
    if (entry.call.collective != Collective::send_recv || entry.message) continue;
    if (!comm->impl->orders_messages()) continue;
    for (Pending& other : posted) {
      if (other.comm != comm || other.call.collective != Collective::send_recv) continue;
      other.call.with_host_memory = true;
      other.message = other.stream_ordered = false;
      other.wait = other.request == nullptr;
    }
  }
}

}  // namespace

void find_messages(std::vector<Pending>& posted) {
  for (Pending& entry : posted) {
    if (entry.call.collective != Collective::send_recv || entry.message) continue;
    entry.message = entry.comm->impl->runs_in_stream(entry.call);
    if (!entry.message && entry.comm->impl->keeps_own(entry.call)) match_own(posted, entry.comm);
  }
  keep_order(posted);
}

Result<void> start_messages(std::vector<Pending>& posted, gdrxComm* comm) {
  std::vector<GroupMessage> messages;
  std::vector<Pending*> entries;
  for (Pending& entry : posted) {
    if (!entry.message || entry.comm != comm) continue;
    messages.push_back({std::move(entry.call), !entry.stream_ordered});
    entries.push_back(&entry);
  }
  GDRX_TRY(comm->impl->start_messages(messages));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i]->operation = messages[i].operation;
    if (entries[i]->request == nullptr) continue;
    hand_out(comm, entries[i]->operation, entries[i]->request);
  }
  return {};
}

std::vector<gdrxComm*> with_messages(const std::vector<Pending>& posted) {
  std::vector<gdrxComm*> comms;
  for (const Pending& entry : posted) {
    if (!entry.message) continue;
    if (std::find(comms.begin(), comms.end(), entry.comm) == comms.end()) {
      comms.push_back(entry.comm);
    }
  }
  return comms;
}

}  // namespace gdrx::c_api
