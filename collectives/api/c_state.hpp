// SPDX-License-Identifier: Apache-2.0
// What stands behind the C API's handles, and the firewall that every function of it runs behind.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/own_thread.hpp"
#include "collectives/comm/communicator.hpp"
#include "gdrx/gdrx.h"
#include "transport/bootstrap/fork.hpp"

namespace gdrx::c_api {

/// Communicators of one gdrxCommInitAll. One thread may destroy them one after another, so none of
/// them can wait for the rest: they stay until the last is destroyed.
struct Siblings {
  std::mutex mutex;
  std::size_t alive = 0;
  std::vector<std::unique_ptr<Communicator>> destroyed;
};

/// A communicator that a thread makes.
struct Starting {
  enum class State : std::uint8_t { running, made, failed };
  std::atomic<bool> cancelled{false};
  std::atomic<State> state{State::running};
  Error error;       // published by `state`
  OwnThread thread;  // last: it uses the others
};

}  // namespace gdrx::c_api

struct gdrxComm {
  std::unique_ptr<gdrx::c_api::Starting> starting;  // null: it was made at once
  std::unique_ptr<gdrx::Communicator> impl;         // published by starting->state
  gdrx::Communicator::Options options;              // of those that are split from it
  std::mutex last_error_mutex;                      // any thread may ask for it
  gdrx::Text last_error;
  std::map<int, std::shared_ptr<const gdrx::MadeOperator>> operators;  // by gdrxRedOp_t
  std::vector<const gdrx::Registration*> registered;  // memory of the program's, once an owner
  std::uint16_t user_operators = 0;                   // that were made, of functions
  bool failure_told = false;        // last_error is of the communicator's failure, or later
  std::mutex requests_mutex;        // a handler may end a request
  gdrxRequest* requests = nullptr;  // that are open, the latest first
  gdrx::Birthplace birthplace;
  std::uint32_t shrinks = 0;                        // that were asked for
  bool finalized = false;                           // or about to be, by the next
  std::atomic<bool> met{false};                     // by the finalizer
  std::shared_ptr<gdrx::c_api::Siblings> siblings;  // null: the other ranks are somebody else's
  gdrx::OwnThread finalizer;                        // last: it uses the others
};

struct gdrxRequest {
  gdrxComm* comm = nullptr;  // null: it has ended, and the operation with it
  std::shared_ptr<gdrx::Operation> operation;
  gdrxRequest* older = nullptr;  // of comm
  gdrxRequest* newer = nullptr;
};

namespace gdrx::c_api {

/// Whether there is a communicator behind it. Any thread.
inline bool is_made(const gdrxComm* comm) noexcept {
  if (comm == nullptr) return false;
  if (comm->starting && comm->starting->state != Starting::State::made) return false;
  return comm->impl != nullptr;
}

gdrxResult_t to_c(Errc code) noexcept;
/// One line for people.
Text words_of(const Error& error) noexcept;
/// Remembers the error for gdrxGetLastError (of the communicator, and of this thread) and maps it.
gdrxResult_t report(gdrxComm* comm, const Error& error) noexcept;
/// There was no memory, which is the communicator's end: reports that, or why it had ended before.
gdrxResult_t report_no_memory(gdrxComm* comm) noexcept;

/// Runs `body`, which returns Result<void>, where an exception would end the process.
template <class Body>
Result<void> contained(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return tl::unexpected(no_memory());
  } catch (const std::system_error&) {
    return fail(Errc::system, "no new thread");
  } catch (const std::exception&) {
    return fail(Errc::internal, "exception");
  }
}

/// Refuses a communicator in a child of fork(), which has neither its threads nor its connections.
inline Result<void> check_birthplace(const gdrxComm* comm) {
  if (comm == nullptr || comm->birthplace.here()) return {};
  return fail(Errc::invalid_argument,
              "the communicator is of the process that forked this one: it cannot be used here");
}

/// Refuses what has no place between gdrxCommFinalize and gdrxCommDestroy.
inline Result<void> check_open(const gdrxComm* comm) {
  if (!comm->finalized) return {};
  return fail(Errc::invalid_argument,
              "the communicator is finalized: only its requests and gdrxCommDestroy are left");
}

/// Runs `body`, which returns Result<void>. No exception leaves it.
template <class Body>
gdrxResult_t guarded(gdrxComm* comm, Body&& body) noexcept {
  try {
    try {
      // The communicator's own lock may be held by a thread that this process does not have.
      if (const auto here = check_birthplace(comm); !here) return report(nullptr, here.error());
      const Result<void> result = std::forward<Body>(body)();
      return result ? gdrxSuccess : report(comm, result.error());
    } catch (const std::bad_alloc&) {
      return report_no_memory(comm);
    } catch (const std::exception& e) {
      if (is_made(comm)) comm->impl->fail_for_memory();
      return report(comm, Error{Errc::internal, std::string("exception: ") + e.what(), 0});
    }
  } catch (...) {  // while reporting
    return report_no_memory(comm);
  }
}

/// Posts, or queues when a group is open on this thread; `call` is moved from. Waits if `request`
/// is null.
Result<void> submit(gdrxComm* comm, Call& call, gdrxStream_t stream, gdrxRequest_t* request);

/// As gdrxConfig_t has it. Empty: the default. 0: none.
Result<std::optional<std::chrono::milliseconds>> timeout_of(double seconds, const char* name);

/// Puts the operation's request among the communicator's open ones.
void hand_out(gdrxComm* comm, const std::shared_ptr<Operation>& operation, gdrxRequest_t* request);

/// Whether a group is open on this thread.
bool in_group() noexcept;
/// What makes a communicator, by a thread of its own when the group ends. `comm`: whose error it
/// is, or null.
void make_in_group(gdrxComm* comm, std::function<Result<void>()> make);

/// Of a group that is open on this thread: nothing of it will be started.
void refuse_group(gdrxComm* comm, const Error& why);
/// The communicator is about to be destroyed.
void leave_group(const gdrxComm* comm);
/// Its open requests are done, with `ended` unless they were before.
void end_requests(gdrxComm* comm, const Result<void>& ended);

/// guarded(), for what may stand in a group.
template <class Body>
gdrxResult_t guarded_call(gdrxComm* comm, Body&& body) noexcept {
  return guarded(comm, [&]() -> Result<void> {
    Result<void> result = [&]() -> Result<void> {
      try {
        return std::forward<Body>(body)();
      } catch (...) {
        refuse_group(comm, no_memory());
        throw;
      }
    }();
    if (!result) refuse_group(comm, result.error());
    return result;
  });
}

}  // namespace gdrx::c_api
