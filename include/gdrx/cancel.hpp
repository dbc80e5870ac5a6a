// SPDX-License-Identifier: Apache-2.0
// Ending what waits by deadlines, from another thread.
#pragma once

#include <atomic>
#include <chrono>

namespace gdrx {

/// While it lives, this thread can be hurried: once `cancelled` is true, its steady_clock() says
/// the end of time, so that every deadline has passed. Sleeps look often enough (longest_sleep()).
class Cancellable {
 public:
  explicit Cancellable(const std::atomic<bool>& cancelled) noexcept;
  ~Cancellable();
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;

  /// How long a wait of this thread sleeps before it looks at the clock again.
  static std::chrono::milliseconds longest_sleep() noexcept;
};

}  // namespace gdrx
