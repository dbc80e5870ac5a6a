// SPDX-License-Identifier: Apache-2.0
// What a communicator tells of itself.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"
#include "collectives/api/c_struct.hpp"

namespace gdrx::c_api {
namespace {

void copy_text(const std::string& text, char* to, std::size_t capacity) {
  if (capacity == 0) return;
  const std::size_t length = std::min(text.size(), capacity - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

}  // namespace
}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxCommGetLastOp(gdrxComm_t comm, gdrxOpInfo_t* info) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_struct(info, sizeof *info, "gdrxOpInfo_t"));
    const OperationInfo last = comm->impl->last_operation();
    gdrxOpInfo_t full{};
    copy_text(std::string(plan::to_string(last.algorithm)), full.algorithm, sizeof full.algorithm);
    copy_text(std::string(comm->impl->path_name(last.path)), full.transport, sizeof full.transport);
    full.slices = last.counters.slices;
    full.messages_sent = last.counters.sent;
    full.messages_received = last.counters.received;
    full.plan_sends = last.planned.sends;
    full.plan_receives = last.planned.receives;
    full.predicted_us = last.predicted_us;
    full.registered = last.registered ? 1 : 0;
    fill(info, full);
    return {};
  });
}

gdrxResult_t gdrxCommExplain(gdrxComm_t comm, size_t bytes, char* text, size_t capacity) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_buffer(text, capacity, "text"));
    copy_text(GDRX_TRY(comm->impl->explain(bytes)), text, capacity);
    return {};
  });
}

gdrxResult_t gdrxCommDescribe(gdrxComm_t comm, char* text, size_t capacity) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_buffer(text, capacity, "text"));
    copy_text(comm->impl->describe(), text, capacity);
    return {};
  });
}

gdrxResult_t gdrxCommGetMemory(gdrxComm_t comm, gdrxMemoryInfo_t* info) {
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_struct(info, sizeof *info, "gdrxMemoryInfo_t"));
    const MemoryHeld held = comm->impl->memory_held();
    gdrxMemoryInfo_t full{};
    full.shared_bytes = held.shared;
    full.message_bytes = held.inbox;
    full.scratch_bytes = held.scratch;
    full.pinned_bytes = held.pinned;
    full.allocated_bytes = held.allocated;
    full.registered_bytes = held.registered;
    full.gpu_bytes = held.gpu;
    full.gpu_allocated_bytes = held.gpu_allocated;
    full.gpu_registered_bytes = held.gpu_registered;
    fill(info, full);
    return {};
  });
}

// Any thread: nothing of the communicator's own C state is written.
gdrxResult_t gdrxCommGetWaiting(gdrxComm_t comm, gdrxWaiting_t* waiting) {
  return guarded(nullptr, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_struct(waiting, sizeof *waiting, "gdrxWaiting_t"));
    const Waiting now = GDRX_TRY(comm->impl->waiting());
    Duration longest{};
    std::string text;
    for (const Waiting::Running& call : now.calls) {
      longest = std::max(longest, call.runs);
      text += fmt::format("{}{:.1f} s: {}", text.empty() ? "" : "\n",
                          std::chrono::duration<double>(call.runs).count(), call.text);
    }
    gdrxWaiting_t full = *waiting;
    full.calls = static_cast<int>(now.calls.size());
    full.behind = static_cast<int>(now.behind);
    full.seconds = std::chrono::duration<double>(longest).count();
    full.rank_count = static_cast<int>(now.ranks.size());
    const int room = full.ranks != nullptr ? full.rank_capacity : 0;
    for (int i = 0; i < std::min(full.rank_count, room); ++i) {
      full.ranks[i] = index(now.ranks[static_cast<std::size_t>(i)]);
    }
    if (full.text != nullptr) copy_text(text, full.text, full.text_capacity);
    fill(waiting, full);
    return {};
  });
}
