// SPDX-License-Identifier: Apache-2.0
// Requests, and groups of calls that start together.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

#include "collectives/comm/c_state.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::c_api {
namespace {

std::string_view api_name(const Call& call) {
  if (call.collective == Collective::send_recv) return call.sends ? "gdrxSend" : "gdrxRecv";
  return plan::traits_of(call.collective).function;
}

/// A call between gdrxGroupStart and gdrxGroupEnd.
struct Pending {
  gdrxComm* comm = nullptr;
  Call call;
  gdrxRequest_t* request = nullptr;
  bool wait = false;
  bool stream_ordered = false;  // nobody waits for it but the stream
  std::shared_ptr<Operation> operation;
};

/// A group that will not be started, and the first reason.
struct Refusal {
  gdrxComm* comm = nullptr;
  Error why;
};

thread_local int group_depth = 0;
thread_local std::vector<Pending> group;
thread_local std::optional<Refusal> refusal;

/// What the user called, and how much he moves by it.
trace::Span api_mark(gdrxComm* comm, const Call& call) {
  trace::Track* const track = comm->impl->track();
  if (track == nullptr) return {};
  trace::Detail detail;
  detail.bytes = call.count * size_of(call.type);
  if (call.collective == Collective::send_recv) detail.peer = index(call.root);
  return {track, trace::Row::calls, trace::Kind::call, api_name(call), detail};
}

bool is_stream_ordered(const gdrxComm* comm, const Call& call, const gdrxRequest_t* request) {
  return call.stream != nullptr && request == nullptr && comm->impl->runs_in_stream(call);
}

void enqueue(gdrxComm* comm, Call call, gdrxRequest_t* request) {
  Pending pending;
  pending.comm = comm;
  pending.call = std::move(call);
  pending.request = request;
  pending.stream_ordered = is_stream_ordered(comm, pending.call, request);
  pending.wait = request == nullptr && !pending.stream_ordered;
  group.push_back(std::move(pending));
}

void hand_out(gdrxComm* comm, const std::shared_ptr<Operation>& operation, gdrxRequest_t* request) {
  auto* const made = new gdrxRequest{comm, operation, comm->requests, nullptr};
  if (made->older != nullptr) made->older->newer = made;
  comm->requests = *request = made;
}

void put_away(gdrxRequest_t* request) {
  gdrxRequest* const old = std::exchange(*request, nullptr);
  if (old->older != nullptr) old->older->newer = old->newer;
  if (old->newer != nullptr) old->newer->older = old->older;
  if (old->comm != nullptr && old->comm->requests == old) old->comm->requests = old->older;
  delete old;
}

Result<void> result_of(const Operation& operation) {
  if (operation.error) return tl::unexpected(*operation.error);
  return {};
}

// Several communicators of one process may wait for each other: none is waited for alone.
gdrxResult_t wait_for_all(const std::vector<Pending>& posted) {
  gdrxResult_t worst = gdrxSuccess;
  bool pending = true;
  while (pending) {
    pending = false;
    worst = gdrxSuccess;
    for (const Pending& entry : posted) {
      if (!entry.wait || !entry.operation) continue;
      const auto state = entry.comm->impl->test(*entry.operation);
      if (!state) {
        worst = report(entry.comm, state.error());
      } else if (*state == Progress::pending) {
        pending = true;
      }
    }
    if (pending) sched_yield();
  }
  return worst;
}

// What can be refused is refused before anything is started: the rest would wait for ranks whose
// group was refused as a whole, or be taken for calls of a later one.
Result<void> check_group(const std::vector<Pending>& calls, gdrxComm*& comm) {
  for (const Pending& entry : calls) {
    comm = entry.comm;
    GDRX_TRY(entry.comm->impl->check(entry.call));
    if (!entry.stream_ordered) GDRX_TRY(entry.comm->impl->check_wait(entry.call));
  }
  return {};
}

Result<void> start_entry(Pending& entry) {
  if (entry.stream_ordered) return entry.comm->impl->launch(entry.call);
  entry.operation = GDRX_TRY(entry.comm->impl->post(std::move(entry.call)));
  if (entry.request != nullptr) hand_out(entry.comm, entry.operation, entry.request);
  return {};
}

gdrxResult_t run_group(std::vector<Pending>& posted) {
  gdrxResult_t result = gdrxSuccess;
  gdrxComm* refuses = nullptr;
  if (const auto checked = check_group(posted, refuses); !checked) {
    return report(refuses, checked.error());
  }
  // First what the GPUs run, which waits for nothing here: what is staged waits for its stream, in
  // which other ranks of this process may wait for such a call.
  std::vector<bool> on_gpus;
  for (const Pending& entry : posted) {
    on_gpus.push_back(entry.comm->impl->runs_in_stream(entry.call));
  }
  for (const bool now : {true, false}) {
    for (std::size_t i = 0; i < posted.size(); ++i) {
      if (on_gpus[i] != now) continue;
      const auto started = start_entry(posted[i]);
      if (!started && result == gdrxSuccess) result = report(posted[i].comm, started.error());
    }
  }
  const gdrxResult_t waited = wait_for_all(posted);
  return result != gdrxSuccess ? result : waited;
}

// Some of it may run: its communicators end, as that of a call alone would.
gdrxResult_t end_for_memory(const std::vector<Pending>& posted) noexcept {
  for (const Pending& entry : posted) {
    entry.comm->impl->fail_for_memory();
    report_no_memory(entry.comm);
  }
  return report_no_memory(nullptr);
}

}  // namespace

void refuse_group(gdrxComm* comm, const Error& why) {
  if (group_depth > 0 && !refusal) refusal = Refusal{comm, why};
}

void leave_group(const gdrxComm* comm) {
  const std::size_t dropped =
      std::erase_if(group, [&](const Pending& pending) { return pending.comm == comm; });
  if (refusal && refusal->comm == comm) refusal->comm = nullptr;
  if (dropped == 0) return;
  refuse_group(nullptr, Error{Errc::invalid_argument,
                              "a communicator was destroyed in a group that has calls on it", 0});
}

void end_requests(gdrxComm* comm, const Result<void>& ended) {
  while (comm->requests != nullptr) {
    gdrxRequest& request = *std::exchange(comm->requests, comm->requests->older);
    request.comm = nullptr;
    request.older = request.newer = nullptr;
    if (request.operation->done.load(std::memory_order_acquire)) continue;
    if (!ended) request.operation->error = ended.error();
    request.operation->done = true;
  }
}

Result<void> submit(gdrxComm* comm, Call call, gdrxStream_t stream, gdrxRequest_t* request) {
  const trace::Span mark = api_mark(comm, call);
  call.stream = stream;
  if (request != nullptr) *request = nullptr;
  if (group_depth > 0) {
    enqueue(comm, std::move(call), request);
    return {};
  }
  if (is_stream_ordered(comm, call, request)) return comm->impl->launch(call);
  std::shared_ptr<Operation> operation = GDRX_TRY(comm->impl->post(std::move(call)));
  if (request == nullptr) return comm->impl->wait(*operation);
  hand_out(comm, operation, request);
  return {};
}

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxGroupStart(void) {
  ++group_depth;
  return gdrxSuccess;
}

gdrxResult_t gdrxGroupEnd(void) {
  if (group_depth == 0) {
    return guarded(nullptr, []() -> Result<void> {
      return fail(Errc::invalid_argument, "gdrxGroupEnd without gdrxGroupStart");
    });
  }
  if (--group_depth > 0) return gdrxSuccess;
  // Of several communicators, so that no trace file has it; what it waits for their plans show.
  const trace::Span mark(trace::Track::process(), trace::Row::calls, trace::Kind::call,
                         "gdrxGroupEnd");
  gdrxResult_t result = gdrxSuccess;
  const gdrxResult_t guard = guarded(nullptr, [&]() -> Result<void> {
    std::vector<Pending> calls = std::exchange(group, {});
    const std::optional<Refusal> refused = std::exchange(refusal, std::nullopt);
    try {
      result = refused ? report(refused->comm, refused->why) : run_group(calls);
    } catch (const std::bad_alloc&) {
      result = end_for_memory(calls);
    }
    return {};
  });
  return guard != gdrxSuccess ? guard : result;
}

gdrxResult_t gdrxTest(gdrxRequest_t* request) {
  if (request == nullptr) return gdrxInvalidArgument;
  if (*request == nullptr) return gdrxSuccess;
  gdrxComm* comm = (*request)->comm;
  bool pending = false;
  const gdrxResult_t result = guarded(comm, [&]() -> Result<void> {
    Operation& operation = *(*request)->operation;
    if (comm == nullptr) return result_of(operation);
    pending = GDRX_TRY(comm->impl->test(operation)) == Progress::pending;
    return {};
  });
  if (pending) return gdrxInProgress;
  put_away(request);
  return result;
}

gdrxResult_t gdrxWait(gdrxRequest_t* request) {
  if (request == nullptr) return gdrxInvalidArgument;
  if (*request == nullptr) return gdrxSuccess;
  gdrxComm* comm = (*request)->comm;
  const gdrxResult_t result = guarded(comm, [&]() -> Result<void> {
    Operation& operation = *(*request)->operation;
    if (comm == nullptr) return result_of(operation);
    const trace::Span mark(comm->impl->track(), trace::Row::calls, trace::Kind::call, "gdrxWait");
    return comm->impl->wait(operation);
  });
  put_away(request);
  return result;
}
