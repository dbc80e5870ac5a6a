// SPDX-License-Identifier: Apache-2.0
// Steps between two words of a conversation that nobody else can be told to leave.
#pragma once

#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "gdrx/clock.hpp"

namespace gdrx {

/// What `step` returns. It is taken again while there is no memory for it: there may be soon. After
/// the deadline std::bad_alloc leaves.
template <class Step>
auto insist(Deadline deadline, Step&& step) {
  while (true) {
    try {
      return std::forward<Step>(step)();
    } catch (const std::bad_alloc&) {
      if (deadline.passed(steady_clock().now())) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gdrx
