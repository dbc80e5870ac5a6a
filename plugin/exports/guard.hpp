// SPDX-License-Identifier: Apache-2.0
// The one exception firewall, and what an error is to NCCL.
#pragma once

#include <exception>

#include "gdrx/result.hpp"
#include "plugin/abi/types.hpp"

namespace gdrx::net {

/// Logs the error with the call's name and says what it is to NCCL.
nccl::NetResult to_nccl(const Error& error, const char* call) noexcept;
nccl::NetResult from_exception(const std::exception* thrown, const char* call) noexcept;

template <class Call>
nccl::NetResult guarded(const char* name, const Call& call) noexcept {
  try {
    const Result<void> result = call();
    return result ? nccl::NetResult::success : to_nccl(result.error(), name);
  } catch (const std::exception& thrown) {
    return from_exception(&thrown, name);
  } catch (...) {
    return from_exception(nullptr, name);
  }
}

}  // namespace gdrx::net
