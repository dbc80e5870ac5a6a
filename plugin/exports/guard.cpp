// SPDX-License-Identifier: Apache-2.0
#include "plugin/exports/guard.hpp"
#include "gdrx/log_limit.hpp"

#include "plugin/core/log.hpp"

namespace gdrx::net {
namespace {

nccl::NetResult result_of(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return nccl::NetResult::invalid_argument;
    case Errc::system:
    case Errc::unsupported:
      return nccl::NetResult::system_error;
    case Errc::timeout:
    case Errc::aborted:
    case Errc::peer_lost:
    case Errc::mismatch:
    case Errc::protocol:
      return nccl::NetResult::remote_error;
    case Errc::internal:
      return nccl::NetResult::internal_error;
  }
  return nccl::NetResult::internal_error;
}

// A caller may make a call that fails again and again.
LogLimit& failures() {
  static LogLimit limit(16);
  return limit;
}

}  // namespace

nccl::NetResult to_nccl(const Error& error, const char* call) noexcept {
  try {
    failures().warn(nccl_log(), steady_clock().now(), "{}: {}", call, describe(error));
  } catch (...) {  // no memory for the line: the code has to do
  }
  return result_of(error.code);
}

nccl::NetResult from_exception(const std::exception* thrown, const char* call) noexcept {
  try {
    failures().warn(nccl_log(), steady_clock().now(), "{}: {}", call,
                    thrown != nullptr ? thrown->what() : "an exception");
  } catch (...) {
  }
  return nccl::NetResult::internal_error;
}

}  // namespace gdrx::net
