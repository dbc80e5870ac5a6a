// SPDX-License-Identifier: Apache-2.0
// What stands behind the C API's handles, and the firewall that every function of it runs behind.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

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

}  // namespace gdrx::c_api

struct gdrxComm {
  std::unique_ptr<gdrx::Communicator> impl;
  std::string last_error;
  bool failure_told = false;        // last_error is of the communicator's failure, or later
  gdrxRequest* requests = nullptr;  // that are open, the latest first
  gdrx::Birthplace birthplace;
  std::shared_ptr<gdrx::c_api::Siblings> siblings;  // null: the other ranks are somebody else's
};

struct gdrxRequest {
  gdrxComm* comm = nullptr;  // null: it has ended, and the operation with it
  std::shared_ptr<gdrx::Operation> operation;
  gdrxRequest* older = nullptr;  // of comm
  gdrxRequest* newer = nullptr;
};

namespace gdrx::c_api {

gdrxResult_t to_c(Errc code) noexcept;
/// Remembers the error for gdrxGetLastError (of the communicator, and of this thread) and maps it.
/// Without memory for its words the error keeps its code.
gdrxResult_t report(gdrxComm* comm, const Error& error) noexcept;
/// The same where there is no memory to say more.
gdrxResult_t report_no_memory(gdrxComm* comm) noexcept;

/// Runs `body`, which returns Result<void>, where an exception would end the process.
template <class Body>
Result<void> contained(Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return fail(Errc::system, "out of memory");  // short enough to need none
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
      if (comm != nullptr && comm->impl) comm->impl->fail_for_memory();
      return report_no_memory(comm);
    } catch (const std::exception& e) {
      if (comm != nullptr && comm->impl) comm->impl->fail_for_memory();
      return report(comm, Error{Errc::internal, std::string("exception: ") + e.what(), 0});
    }
  } catch (...) {  // while reporting
    return report_no_memory(comm);
  }
}

/// Posts, or queues when a group is open on this thread. Waits if `request` is null.
Result<void> submit(gdrxComm* comm, Call call, gdrxStream_t stream, gdrxRequest_t* request);

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
        refuse_group(comm, Error{Errc::system, "out of memory", 0});
        throw;
      }
    }();
    if (!result) refuse_group(comm, result.error());
    return result;
  });
}

}  // namespace gdrx::c_api
