// SPDX-License-Identifier: Apache-2.0
// Results and last errors.
#include "collectives/api/c_state.hpp"

namespace gdrx::c_api {
namespace {

thread_local Text thread_error;
thread_local Text thread_answer;  // about a communicator that others may use meanwhile

}  // namespace

// Without memory for it, without the system's text.
Text words_of(const Error& error) noexcept {
  try {
    return describe(error);
  } catch (const std::bad_alloc&) {
    return error.what;
  }
}

gdrxResult_t to_c(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return gdrxInvalidArgument;
    case Errc::system:
      return gdrxSystemError;
    case Errc::unsupported:
      return gdrxUnsupported;
    case Errc::timeout:
      return gdrxTimeout;
    case Errc::aborted:
      return gdrxAborted;
    case Errc::peer_lost:
      return gdrxPeerLost;
    case Errc::mismatch:
      return gdrxMismatch;
    case Errc::protocol:
      return gdrxProtocolError;
    case Errc::internal:
      return gdrxInternalError;
  }
  return gdrxInternalError;
}

gdrxResult_t report(gdrxComm* comm, const Error& error) noexcept {
  thread_error = words_of(error);
  if (comm != nullptr) {
    const bool failed = is_made(comm) && comm->impl->failure().has_value();
    const std::lock_guard lock(comm->last_error_mutex);
    comm->last_error = thread_error;
    comm->failure_told = failed;
  }
  return to_c(error.code);
}

gdrxResult_t report_no_memory(gdrxComm* comm) noexcept {
  if (!is_made(comm)) return report(comm, no_memory());
  comm->impl->fail_for_memory();
  return report(comm, *comm->impl->failure());
}

}  // namespace gdrx::c_api

using namespace gdrx;         // NOLINT: this file is the C API's implementation
using namespace gdrx::c_api;  // NOLINT

const char* gdrxGetErrorString(gdrxResult_t result) {
  switch (result) {
    case gdrxSuccess:
      return "success";
    case gdrxInvalidArgument:
      return "invalid argument";
    case gdrxSystemError:
      return "system error";
    case gdrxUnsupported:
      return "unsupported";
    case gdrxTimeout:
      return "timeout";
    case gdrxAborted:
      return "aborted";
    case gdrxPeerLost:
      return "peer lost";
    case gdrxMismatch:
      return "mismatched arguments";
    case gdrxProtocolError:
      return "protocol error";
    case gdrxInternalError:
      return "internal error";
    case gdrxInProgress:
      return "in progress";
  }
  return "unknown result";
}

const char* gdrxGetLastError(gdrxComm_t comm) {
  if (comm == nullptr) return thread_error.c_str();
  const std::lock_guard lock(comm->last_error_mutex);
  if (comm->starting && comm->starting->state == Starting::State::failed) {
    comm->last_error = words_of(comm->starting->error);
  }
  // A failure that no call has returned yet.
  const auto failure = is_made(comm) && !comm->failure_told ? comm->impl->failure() : std::nullopt;
  if (failure) {
    comm->last_error = words_of(*failure);
    comm->failure_told = true;
  }
  thread_answer = comm->last_error;
  return thread_answer.c_str();
}
