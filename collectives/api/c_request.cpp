// SPDX-License-Identifier: Apache-2.0
// Requests: tested, waited for, and heard of by a handler.
#include <utility>

#include "collectives/api/c_state.hpp"
#include "collectives/comm/in_handler.hpp"

namespace gdrx::c_api {
namespace {

// comm's lock held.
void detach(gdrxRequest& request) noexcept {
  if (request.older != nullptr) request.older->newer = request.newer;
  if (request.newer != nullptr) request.newer->older = request.older;
  if (request.comm->requests == &request) request.comm->requests = request.older;
  request.comm = nullptr;
  request.older = request.newer = nullptr;
}

void put_away(gdrxRequest_t* request) {
  gdrxRequest* const old = std::exchange(*request, nullptr);
  if (gdrxComm* const comm = old->comm; comm != nullptr) {
    const std::lock_guard lock(comm->requests_mutex);
    detach(*old);
  }
  delete old;
}

Result<void> result_of(const Operation& operation) {
  if (operation.error) return tl::unexpected(*operation.error);
  return {};
}

// Where the error goes for gdrxGetLastError: a handler runs beside the communicator's own thread.
gdrxComm* reporter(gdrxComm* comm) { return InHandler::of_operation(nullptr) ? nullptr : comm; }

/// `body` has ended the call that a request stands for, whatever it returned.
template <class Body>
gdrxResult_t ended(gdrxRequest& request, Body&& body) {
  gdrxComm* const comm = request.comm;
  const std::shared_ptr<Operation> operation = request.operation;
  const gdrxResult_t result = guarded(reporter(comm), std::forward<Body>(body));
  if (operation->end.over()) return result;
  if (comm == nullptr) {
    operation->end.await_over();
    return result;
  }
  // For want of memory it may not have; the failure is set.
  const auto failure = comm->impl->failure();
  comm->impl->end(*operation, failure ? Result<void>(tl::unexpected(*failure)) : Result<void>());
  return result;
}

}  // namespace

void hand_out(gdrxComm* comm, const std::shared_ptr<Operation>& operation, gdrxRequest_t* request) {
  auto* const made = new gdrxRequest{comm, operation, nullptr, nullptr};
  const std::lock_guard lock(comm->requests_mutex);
  made->older = comm->requests;
  if (made->older != nullptr) made->older->newer = made;
  comm->requests = *request = made;
}

// A handler may end its own request meanwhile.
void end_requests(gdrxComm* comm, const Result<void>& ended) {
  while (true) {
    gdrxRequest* request = nullptr;
    std::shared_ptr<Operation> operation;
    {
      const std::lock_guard lock(comm->requests_mutex);
      request = comm->requests;
      if (request == nullptr) return;
      operation = request->operation;
    }
    if (comm->impl) {
      comm->impl->end(*operation, ended);
    } else if (!operation->end.done()) {
      if (!ended) operation->error = ended.error();
      if (operation->end.finish()) operation->end.tell(operation->error);
    }
    const std::lock_guard lock(comm->requests_mutex);
    if (comm->requests == request) detach(*request);
  }
}

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

gdrxResult_t gdrxTest(gdrxRequest_t* request) {
  if (request == nullptr) return gdrxInvalidArgument;
  if (*request == nullptr) return gdrxSuccess;
  gdrxComm* const comm = (*request)->comm;
  Operation& operation = *(*request)->operation;
  bool pending = false;
  const auto test = [&]() -> Result<void> {
    if (comm == nullptr) return result_of(operation);
    pending = GDRX_TRY(comm->impl->test(operation)) == Progress::pending;
    return {};
  };
  const gdrxResult_t tested = guarded(reporter(comm), test);
  // While its handler runs elsewhere it is not done: nobody waits here.
  if (pending || (operation.end.done() && !operation.end.over())) return gdrxInProgress;
  const gdrxResult_t result = ended(**request, [&] { return result_of(operation); });
  put_away(request);
  return tested != gdrxSuccess ? tested : result;
}

gdrxResult_t gdrxWait(gdrxRequest_t* request) {
  if (request == nullptr) return gdrxInvalidArgument;
  if (*request == nullptr) return gdrxSuccess;
  gdrxComm* const comm = (*request)->comm;
  const gdrxResult_t result = ended(**request, [&]() -> Result<void> {
    Operation& operation = *(*request)->operation;
    if (comm == nullptr) return result_of(operation);
    const trace::Span mark(comm->impl->track(), trace::Row::calls, trace::Kind::call, "gdrxWait");
    return comm->impl->wait(operation);
  });
  put_away(request);
  return result;
}

gdrxResult_t gdrxRequestOnDone(gdrxRequest_t request, gdrxRequestHandler_t on_done, void* user) {
  if (request == nullptr || on_done == nullptr) {
    return guarded(nullptr, []() -> Result<void> {
      return fail(Errc::invalid_argument, "the request or on_done is NULL");
    });
  }
  gdrxComm* const comm = request->comm;
  return guarded(reporter(comm), [&]() -> Result<void> {
    const std::shared_ptr<Operation> operation = request->operation;
    if (operation->end.armed()) {
      return fail(Errc::invalid_argument, "the request has a handler already");
    }
    const auto handler = [=](const std::optional<Error>& error) {
      const Text text = error ? words_of(*error) : Text();
      on_done(request, error ? to_c(error->code) : gdrxSuccess, text.c_str(), user);
    };
    if (comm != nullptr) return comm->impl->on_done(*operation, handler);
    if (operation->end.arm(handler)) operation->end.tell(operation->error);
    return {};
  });
}
