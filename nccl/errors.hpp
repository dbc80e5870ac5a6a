// SPDX-License-Identifier: Apache-2.0
// Results, and the line that says why.
#pragma once

#include <exception>
#include <utility>

#include "gdrx/gdrx.h"
#include "nccl/abi.hpp"

namespace gdrx::nccl {

Result result_of(gdrxResult_t result) noexcept;

/// Keeps the line for ncclGetLastError, prints it if NCCL_DEBUG asks for warnings, and ends the
/// thread's group, if one is open: nothing of it will be started.
Result refuse(const char* function, Result result, const char* why) noexcept;
/// The same of a question, or of memory: a group that is open goes on.
Result deny(const char* function, Result result, const char* why) noexcept;
/// As refuse(), of what gdrx has refused, with its reason.
Result failed(const char* function, gdrxResult_t result) noexcept;
/// What was kept last on this thread.
const char* last_line() noexcept;
/// What gdrx does not have: ncclInvalidUsage, and the line is printed once in any case. A call ends
/// the thread's group as refuse() does; a question leaves it.
Result absent(const char* function, const char* instead) noexcept;
Result absent_question(const char* function, const char* instead) noexcept;

/// Runs `body`, which may need memory. No exception leaves it.
template <class Body>
Result guarded(const char* function, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception&) {
    return refuse(function, kSystemError, "no memory, or no new thread");
  }
}

}  // namespace gdrx::nccl
