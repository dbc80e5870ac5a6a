// SPDX-License-Identifier: Apache-2.0
// What was asked for when a communicator was made.
#pragma once

#include <atomic>
#include <chrono>

#include "collectives/comm/call.hpp"
#include "gdrx/config.hpp"
#include "gdrx/log.hpp"

namespace gdrx {

struct Settings {
  Config config;
  Log log;
  std::atomic<std::chrono::milliseconds> timeout{};  // of calls that have none of their own

  std::chrono::milliseconds timeout_of(const Call& call) const noexcept {
    return call.timeout.value_or(timeout.load());
  }
};

}  // namespace gdrx
