// SPDX-License-Identifier: Apache-2.0
// Why a communicator stopped: the first writer wins, everybody else reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "collectives/comm/failure_handler.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

/// Who found a failure, and whom it is about: -1: nobody.
struct Blame {
  std::int32_t origin = -1;
  std::int32_t subject = -1;
};

/// Any thread. The check in a wait loop is one relaxed load.
class Failure {
 public:
  /// True if this was the first, and then `blame` counts.
  bool set(const Error& error, Blame blame) noexcept;
  bool happened() const noexcept { return happened_.load(std::memory_order_acquire); }
  /// Meaningful after happened().
  Error error() const noexcept;
  /// Of nobody before it.
  Blame blame() const noexcept;

  FailureHandler handler;  // called by the mesh's thread

 private:
  std::atomic<bool> happened_{false};
  mutable std::mutex mutex_;
  std::optional<Error> error_;
  Blame blame_;
};

}  // namespace gdrx
