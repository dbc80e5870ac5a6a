// SPDX-License-Identifier: Apache-2.0
#include "plugin/exports/guard.hpp"

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

}  // namespace

nccl::NetResult to_nccl(const Error& error, const char* call) noexcept {
  try {
    nccl_log().warn("{}: {}", call, describe(error));
  } catch (...) {  // no memory for the line: the code has to do
  }
  return result_of(error.code);
}

nccl::NetResult from_exception(const std::exception* thrown, const char* call) noexcept {
  try {
    nccl_log().warn("{}: {}", call, thrown != nullptr ? thrown->what() : "an exception");
  } catch (...) {
  }
  return nccl::NetResult::internal_error;
}

}  // namespace gdrx::net
