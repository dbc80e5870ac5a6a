// SPDX-License-Identifier: Apache-2.0
// Requests, and groups of calls that start together.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <vector>

#include "base/own_thread.hpp"
#include "collectives/api/c_pending.hpp"
#include "collectives/api/c_state.hpp"
#include "collectives/api/c_struct.hpp"
#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"

namespace gdrx::c_api {
namespace {

std::string_view api_name(const Call& call) {
  if (call.collective == Collective::send_recv) return call.sends ? "gdrxSend" : "gdrxRecv";
  return plan::function_of(call.collective);
}

/// A communicator that is made when the group ends.
struct Making {
  gdrxComm* comm = nullptr;
  std::function<Result<void>()> make;
};

/// A group that will not be started, and the first reason.
struct Refusal {
  gdrxComm* comm = nullptr;
  Error why;
};

/// What the calls of a group have of their own, and of those inside it.
struct Scope {
  int depth = 0;
  std::optional<std::chrono::milliseconds> timeout;
};

/// What a thread has of its group.
struct Group {
  int depth = 0;
  std::vector<Scope> scopes;  // of the groups with options, the innermost last
  std::vector<Pending> calls;
  std::vector<Pending> spare;  // an ended group's memory, for the next
  std::vector<Making> makings;
  std::optional<Refusal> refusal;
};
// In one piece, as finding it costs as much as a short message: once a function.
constinit thread_local Group the_group;
constexpr std::size_t kMostSpare = 256;

/// What the user called, and how much he moves by it.
trace::Span api_mark(gdrxComm* comm, const Call& call) {
  trace::Track* const track = comm->impl->track();
  if (track == nullptr) return {};
  trace::Detail detail;
  detail.bytes = call.count * size_of(call.type);
  if (call.collective == Collective::send_recv) detail.peer = index(call.root);
  return {track, trace::Row::calls, trace::Kind::call, api_name(call), detail};
}

// cudaStreamPerThread. Streams keep their calls' order by their handles.
const auto kStreamOfEachThread = reinterpret_cast<gdrxStream_t>(0x2);

bool is_stream_ordered(const gdrxComm* comm, const Call& call, const gdrxRequest_t* request) {
  return call.stream != nullptr && request == nullptr && comm->impl->runs_in_stream(call);
}

void enqueue(Group& group, gdrxComm* comm, Call& call, gdrxRequest_t* request) {
  Pending& pending = group.calls.emplace_back();
  pending.comm = comm;
  pending.call = std::move(call);
  pending.request = request;
  pending.stream_ordered = is_stream_ordered(comm, pending.call, request);
  pending.wait = request == nullptr && !pending.stream_ordered;
}

bool is_waited_for(const Pending& entry) { return entry.wait && entry.operation; }

// Whoever waits for one drives all: of one communicator, and none on a GPU. He looks for a while
// before he yields, for which each rank needs a core.
bool are_driven_together(const std::vector<Pending>& posted) {
  if (posted.empty() || posted.front().comm->impl->share_cores()) return false;
  return std::all_of(posted.begin(), posted.end(), [&](const Pending& entry) {
    return !is_waited_for(entry) ||
           (entry.comm == posted.front().comm && !entry.operation->mark && !entry.operation->aside);
  });
}

// Several communicators of one process may wait for each other: none is waited for alone.
gdrxResult_t wait_for_all(std::vector<Pending>& posted) {
  gdrxResult_t worst = gdrxSuccess;
  if (are_driven_together(posted)) {
    for (const Pending& entry : posted) {
      if (!is_waited_for(entry)) continue;
      const auto ended = entry.comm->impl->wait(*entry.operation);
      if (!ended) worst = report(entry.comm, ended.error());
    }
    return worst;
  }
  bool pending = true;
  while (pending) {
    pending = false;
    worst = gdrxSuccess;
    for (Pending& entry : posted) {
      if (!is_waited_for(entry)) continue;
      const auto state = entry.comm->impl->test(*entry.operation, entry.patience);
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

/// First what streams carry, which waits for nothing here: another call may wait for its stream, in
/// which ranks of this process wait for such calls. A communicator's calls keep their order: its
/// first one that no stream carries, and those behind it, are given back.
std::vector<Pending*> start_in_streams(
    std::vector<Pending>& posted, const std::function<void(gdrxComm*, const Result<void>&)>& look) {
  std::vector<Pending*> rest;
  std::vector<const gdrxComm*> held;
  for (Pending& entry : posted) {
    if (entry.message) continue;
    const bool behind = std::find(held.begin(), held.end(), entry.comm) != held.end();
    const Route route = behind ? Route::undecided : entry.comm->impl->route_of(entry.call);
    if (row_of(route).in_stream) {
      entry.call.route = route;
      look(entry.comm, start_entry(entry));
    } else {
      if (!behind) held.push_back(entry.comm);
      rest.push_back(&entry);
    }
  }
  return rest;
}

gdrxResult_t run_group(std::vector<Pending>& posted) {
  gdrxResult_t result = gdrxSuccess;
  gdrxComm* refuses = nullptr;
  find_messages(posted);
  if (const auto checked = check_group(posted, refuses); !checked) {
    return report(refuses, checked.error());
  }
  run_at_once(posted);
  if (posted.empty()) return gdrxSuccess;
  const auto look = [&](gdrxComm* comm, const Result<void>& started) {
    if (!started && result == gdrxSuccess) result = report(comm, started.error());
  };
  const std::vector<Pending*> rest = start_in_streams(posted, look);
  for (Pending* entry : rest) look(entry->comm, start_entry(*entry));
  // Behind the collectives, on every rank: who calls these first has them first. And behind what is
  // staged: in its stream that would wait for messages that their peers may have behind it.
  for (gdrxComm* comm : with_messages(posted)) look(comm, start_messages(posted, comm));
  const gdrxResult_t waited = wait_for_all(posted);
  return result != gdrxSuccess ? result : waited;
}

// Each waits for others of them, so each has a thread. All that can be made are.
gdrxResult_t make_all(const std::vector<Making>& all) {
  std::vector<Result<void>> results(all.size());
  const auto started = contained([&]() -> Result<void> {
    std::vector<OwnThread> threads;
    threads.reserve(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back("gdrx-init",
                           [&results, &all, i] { results[i] = contained(all[i].make); });
    }
    return {};
  });
  gdrxResult_t result = started ? gdrxSuccess : report(nullptr, started.error());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (results[i]) continue;
    const gdrxResult_t why = report(all[i].comm, results[i].error());
    if (result == gdrxSuccess) result = why;
  }
  return result;
}

// Some of it may run: its communicators end, as that of a call alone would.
gdrxResult_t end_for_memory(const std::vector<Pending>& posted) noexcept {
  gdrxResult_t result = report_no_memory(nullptr);
  for (const Pending& entry : posted) result = report_no_memory(entry.comm);
  return result;
}

// Inside the groups that are open.
Result<Scope> scope_of(const Group& group, const gdrxCallOptions_t& given) {
  const gdrxCallOptions_t options =
      GDRX_TRY(in_full(&given, GDRX_CALL_OPTIONS_INITIALIZER, sizeof(gdrxCallOptions_t), "options",
                       "gdrxCallOptions_t", "GDRX_CALL_OPTIONS_INITIALIZER"));
  Scope scope = group.scopes.empty() ? Scope{} : group.scopes.back();
  scope.depth = group.depth + 1;
  const auto timeout = GDRX_TRY(timeout_of(options.timeout_seconds, "options: timeout_seconds"));
  if (timeout) scope.timeout = timeout;
  return scope;
}

void close_scope(Group& group) noexcept {
  if (!group.scopes.empty() && group.scopes.back().depth == group.depth) group.scopes.pop_back();
}

gdrxResult_t predict(std::vector<Pending>& calls, double& us) {
  gdrxComm* refuses = nullptr;
  find_messages(calls);
  if (const auto checked = check_group(calls, refuses); !checked) {
    return report(refuses, checked.error());
  }
  us = predicted_us(calls);
  return gdrxSuccess;
}

}  // namespace

bool in_group() noexcept { return the_group.depth > 0; }

void make_in_group(gdrxComm* comm, std::function<Result<void>()> make) {
  the_group.makings.push_back({comm, std::move(make)});
}

void refuse_group(gdrxComm* comm, const Error& why) {
  Group& group = the_group;
  if (group.depth > 0 && !group.refusal) group.refusal = Refusal{comm, why};
}

void leave_group(const gdrxComm* comm) {
  Group& group = the_group;
  const std::size_t dropped =
      std::erase_if(group.makings, [&](const Making& making) { return making.comm == comm; }) +
      std::erase_if(group.calls, [&](const Pending& pending) { return pending.comm == comm; });
  if (group.refusal && group.refusal->comm == comm) group.refusal->comm = nullptr;
  if (dropped == 0) return;
  refuse_group(nullptr, Error{Errc::invalid_argument,
                              "a communicator was destroyed in a group that has calls on it", 0});
}

Result<void> submit(gdrxComm* comm, Call& call, gdrxStream_t stream, gdrxRequest_t* request) {
  const trace::Span mark = api_mark(comm, call);
  if (stream == kStreamOfEachThread) {
    return fail(Errc::invalid_argument,
                "stream 0x2 is CUDA's default stream of each thread, another one in every thread: "
                "give a stream of your own, or gdrxStreamDefault");
  }
  call.stream = stream;
  Group& group = the_group;
  if (!group.scopes.empty()) call.timeout = group.scopes.back().timeout;
  if (request != nullptr) *request = nullptr;
  GDRX_TRY(check_open(comm));
  // Before anybody asks where it runs. Most of what is waited for here never has any.
  if (group.depth > 0 || stream != nullptr || request != nullptr) {
    add_parts(call, comm->impl->rank(), comm->impl->size());
  }
  if (group.depth > 0) {
    enqueue(group, comm, call, request);
    return {};
  }
  if (stream != nullptr) call.route = comm->impl->route_of(call);
  if (is_stream_ordered(comm, call, request)) return comm->impl->launch(call);
  if (request == nullptr) return comm->impl->run(call);
  const std::shared_ptr<Operation> operation = GDRX_TRY(comm->impl->post(std::move(call)));
  hand_out(comm, operation, request);
  return {};
}

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxGroupStart(void) {
  ++the_group.depth;
  return gdrxSuccess;
}

gdrxResult_t gdrxGroupStartWith(const gdrxCallOptions_t* options) {
  return guarded(nullptr, [&]() -> Result<void> {
    Group& group = the_group;
    if (options != nullptr) group.scopes.push_back(GDRX_TRY(scope_of(group, *options)));
    ++group.depth;
    return {};
  });
}

gdrxResult_t gdrxGroupEnd(void) {
  Group& group = the_group;
  if (group.depth == 0) {
    return guarded(nullptr, []() -> Result<void> {
      return fail(Errc::invalid_argument, "gdrxGroupEnd without gdrxGroupStart");
    });
  }
  close_scope(group);
  if (--group.depth > 0) return gdrxSuccess;
  // Of several communicators, so that no trace file has it; what it waits for their plans show.
  const trace::Span mark(trace::Track::process(), trace::Row::calls, trace::Kind::call,
                         "gdrxGroupEnd");
  gdrxResult_t result = gdrxSuccess;
  const gdrxResult_t guard = guarded(nullptr, [&]() -> Result<void> {
    std::vector<Pending> calls = std::exchange(group.calls, std::exchange(group.spare, {}));
    const std::vector<Making> made = std::exchange(group.makings, {});
    const std::optional<Refusal> refused = std::exchange(group.refusal, std::nullopt);
    try {
      if (refused) {
        result = report(refused->comm, refused->why);
        return {};
      }
      result = make_all(made);
      const gdrxResult_t ran = run_group(calls);
      if (result == gdrxSuccess) result = ran;
      calls.clear();
      if (calls.capacity() <= kMostSpare) group.spare = std::move(calls);
    } catch (const std::bad_alloc&) {
      result = end_for_memory(calls);
    }
    return {};
  });
  return guard != gdrxSuccess ? guard : result;
}

gdrxResult_t gdrxGroupPredict(double* microseconds) {
  gdrxResult_t result = gdrxSuccess;
  const gdrxResult_t guard = guarded(nullptr, [&]() -> Result<void> {
    Group& group = the_group;
    if (group.depth != 1) {
      return fail(Errc::invalid_argument, group.depth == 0
                                              ? "gdrxGroupPredict without gdrxGroupStart"
                                              : "gdrxGroupPredict is for the outermost group");
    }
    close_scope(group);
    group.depth = 0;
    std::vector<Pending> calls = std::exchange(group.calls, {});
    group.makings.clear();
    const std::optional<Refusal> refused = std::exchange(group.refusal, std::nullopt);
    if (microseconds == nullptr) return fail(Errc::invalid_argument, "microseconds is NULL");
    result = refused ? report(refused->comm, refused->why) : predict(calls, *microseconds);
    return {};
  });
  return guard != gdrxSuccess ? guard : result;
}
