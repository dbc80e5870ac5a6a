// SPDX-License-Identifier: Apache-2.0
// The end of a communicator: the meeting of its ranks, and its memory.
#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/api/c_check.hpp"
#include "collectives/api/c_state.hpp"
#include "collectives/comm/departures.hpp"
#include "collectives/comm/in_handler.hpp"

namespace gdrx::c_api {
namespace {

// The last one closes the door: all have drained, or failed, so nobody needs another any more.
void forget_sibling(Siblings& siblings) noexcept {
  std::vector<std::unique_ptr<Communicator>> leaving;
  const std::lock_guard lock(siblings.mutex);
  if (--siblings.alive == 0) leaving.swap(siblings.destroyed);
}

Result<void> finalize(gdrxComm* comm, WaitHook hook) {
  Result<void> ended = contained([&] { return comm->impl->finalize(hook); });
  comm->met = ended.has_value();
  return ended;
}

// A thread of ours may wait for hours, and has nothing else to do.
void sleep_between_looks(void*, std::uint64_t rounds) noexcept {
  constexpr std::uint64_t kAwake = 20'000;  // some 20 ms
  constexpr std::chrono::microseconds kSleep{200};
  if (rounds > kAwake) std::this_thread::sleep_for(kSleep);
}

// Of a request: a thread waits for the others.
Result<void> start_finalizing(gdrxComm* comm, gdrxRequest_t* request) {
  const std::shared_ptr<Operation> operation = comm->impl->operation_aside();
  auto started = contained([&]() -> Result<void> {
    comm->finalizer = OwnThread("gdrx-finalize", [comm, operation] {
      const Result<void> ended = finalize(comm, {sleep_between_looks, nullptr});
      comm->impl->end(*operation, ended);
    });
    return {};
  });
  if (started) hand_out(comm, operation, request);
  comm->finalized = started.has_value();
  return started;
}

// As long who destroys waits for the others himself: most programs destroy in step, and are done
// with it then.
constexpr std::chrono::milliseconds kAtOnce{200};

// Others may not come before this thread has gone on, to a communicator that they destroy first.
// What they still need of this one is kept for them, but nothing of the program's: neither its
// handlers nor its memory. That GPUs of peers map: for the end of that there is no other sign.
Result<void> depart(gdrxComm* comm) {
  Communicator& leaving = *comm->impl;
  if (leaving.has_windows()) return leaving.leave();
  for (const Registration* memory : std::exchange(comm->registered, {})) {
    GDRX_TRY(leaving.release_memory(memory));
  }
  const Deadline deadline = Deadline::after(steady_clock(), leaving.leave_time());
  const Duration at_once = std::min<Duration>(kAtOnce, leaving.leave_time());
  if (GDRX_TRY(leaving.leave_within(at_once)) == Progress::done) return {};
  leaving.mute();
  if (trace::Track* const track = leaving.track()) track->write(comm->options.log);
  Departures::see_to(std::move(comm->impl), deadline);
  return {};
}

}  // namespace
}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxCommFinalize(gdrxComm_t comm, gdrxRequest_t* request) {
  if (request != nullptr) *request = nullptr;
  return guarded(comm, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    GDRX_TRY(check_open(comm));
    if (InHandler::of_operation(comm->impl.get())) {
      return fail(Errc::invalid_argument,
                  "a communicator is not finalized from a handler of its own");
    }
    leave_group(comm);
    const trace::Span mark(comm->impl->track(), trace::Row::calls, trace::Kind::call,
                           "gdrxCommFinalize");
    comm->finalized = true;
    return request == nullptr ? finalize(comm, comm->impl->wait_hook)
                              : start_finalizing(comm, request);
  });
}

gdrxResult_t gdrxCommDestroy(gdrxComm_t comm) {
  if (comm == nullptr) return gdrxSuccess;
  if (!comm->birthplace.here()) return gdrxSuccess;  // it is the parent's, which goes on
  const Destruction destruction(is_made(comm) ? comm->impl.get() : nullptr);
  if (destruction.waits_for_itself()) {
    return guarded(comm, []() -> Result<void> {
      return fail(Errc::invalid_argument,
                  "a communicator is not destroyed from a handler of its own, nor from one that "
                  "such a handler waits for");
    });
  }
  if (comm->starting) {
    if (!is_made(comm)) comm->starting->cancelled = true;
    comm->starting->thread.join();
  }
  const gdrxResult_t result = guarded(nullptr, [&]() -> Result<void> {
    GDRX_TRY(check_comm(comm));
    leave_group(comm);
    if (comm->finalizer.joinable()) comm->finalizer.join();
    trace::Span mark(comm->impl->track(), trace::Row::calls, trace::Kind::call, "gdrxCommDestroy");
    Result<void> drained = comm->met ? Result<void>() : comm->impl->drain(comm->impl->wait_hook);
    end_requests(comm, drained);
    GDRX_TRY(std::move(drained));
    mark.end();  // the communicator may end elsewhere
    if (!comm->siblings) return comm->finalized ? Result<void>() : depart(comm);
    comm->impl->mute();
    const std::lock_guard lock(comm->siblings->mutex);
    comm->siblings->destroyed.push_back(std::move(comm->impl));
    return {};
  });
  if (comm->requests != nullptr) {  // it threw: nothing may write for them any more
    comm->impl.reset();
    end_requests(comm, tl::unexpected(no_memory()));
  }
  if (comm->siblings) forget_sibling(*comm->siblings);
  delete comm;
  return result;
}
