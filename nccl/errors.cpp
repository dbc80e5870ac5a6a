// SPDX-License-Identifier: Apache-2.0
#include "nccl/errors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "gdrx/config.hpp"
#include "gdrx/log.hpp"
#include "nccl/comm.hpp"
#include "nccl/settings.hpp"

namespace gdrx::nccl {
namespace {

// Made at the thread's first error: a library that is loaded late finds little room for what every
// thread has from its beginning.
constexpr std::size_t kLine = 1024;
thread_local std::unique_ptr<char[]> line;

void keep(const char* function, const char* why) noexcept {
  if (!line) line.reset(new (std::nothrow) char[kLine]);
  if (line) std::snprintf(line.get(), kLine, "%s: %s", function, why);
}

void print() noexcept {
  try {
    stderr_sink()(Level::warn, last_line());
  } catch (...) {  // no memory for the line
  }
}

Result end_group(Result result) noexcept {
  if (group.depth > 0 && group.refusal == kSuccess) {
    group.refusal = result;
    gdrxBarrier(nullptr, gdrxStreamNone, nullptr);  // refused, and so is the group, as a whole
  }
  return result;
}

}  // namespace

Result result_of(gdrxResult_t result) noexcept {
  switch (result) {
    case gdrxSuccess:
      return kSuccess;
    case gdrxInvalidArgument:
      return kInvalidArgument;
    case gdrxSystemError:
      return kSystemError;
    case gdrxUnsupported:
    case gdrxMismatch:
      return kInvalidUsage;
    case gdrxTimeout:
      return settings().version >= 23000 ? kTimeout : kRemoteError;
    case gdrxAborted:
    case gdrxPeerLost:
    case gdrxProtocolError:
      return kRemoteError;
    case gdrxInternalError:
      return kInternalError;
    case gdrxInProgress:
      return kInProgress;
  }
  return kInternalError;
}

const char* last_line() noexcept { return line ? line.get() : ""; }

Result deny(const char* function, Result result, const char* why) noexcept {
  keep(function, why);
  if (settings().prints) print();
  return result;
}

Result refuse(const char* function, Result result, const char* why) noexcept {
  return end_group(deny(function, result, why));
}

Result failed(const char* function, gdrxResult_t result) noexcept {
  return refuse(function, result_of(result), gdrxGetLastError(nullptr));
}

Result absent_question(const char* function, const char* instead) noexcept {
  keep(function, instead);
  static std::mutex mutex;
  static std::array<const char*, 64> told{};
  {
    const std::lock_guard lock(mutex);
    const auto end = std::find(told.begin(), told.end(), nullptr);
    if (std::find(told.begin(), end, function) == end && end != told.end()) {
      *end = function;
      print();
    }
  }
  return kInvalidUsage;
}

Result absent(const char* function, const char* instead) noexcept {
  return end_group(absent_question(function, instead));
}

}  // namespace gdrx::nccl

using namespace gdrx::nccl;  // NOLINT: this file defines its functions

GDRX_NCCL_AS(const char*, ncclGetErrorString, Result result) {
  switch (result) {
    case kSuccess:
      return "success";
    case kUnhandledCudaError:
      return "CUDA error (ncclGetLastError or NCCL_DEBUG=WARN has the reason)";
    case kSystemError:
      return "system error (ncclGetLastError or NCCL_DEBUG=WARN has the reason)";
    case kInternalError:
      return "internal error of gdrx";
    case kInvalidArgument:
      return "invalid argument (ncclGetLastError or NCCL_DEBUG=WARN has the reason)";
    case kInvalidUsage:
      return "invalid usage (ncclGetLastError or NCCL_DEBUG=WARN has the reason)";
    case kRemoteError:
      return "another rank died or aborted, or the network failed";
    case kInProgress:
      return "in progress";
    case kTimeout:
      return "timeout";
  }
  return "unknown result";
}

GDRX_NCCL_AS(const char*, ncclGetLastError, ncclComm* comm) {
  const Use use(comm);
  gdrxResult_t failure = gdrxSuccess;
  // Of a failure that no call has returned yet the communicator alone knows.
  const bool failed_by_itself = use.fault() == nullptr &&
                                gdrxCommGetAsyncError(comm->gdrx, &failure) == gdrxSuccess &&
                                failure != gdrxSuccess && failure != gdrxInProgress;
  if (failed_by_itself) keep("communicator", gdrxGetLastError(comm->gdrx));
  return last_line();
}

/// NCCL's log variables are read once.
GDRX_NCCL_AS(void, ncclResetDebugInit) {}
