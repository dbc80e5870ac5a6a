// SPDX-License-Identifier: Apache-2.0
// Waits for a descriptor, until a deadline or until another descriptor stops them.
#pragma once

#include <cstddef>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

/// Waits for `events` (poll's) on one descriptor; `what` is for the error text. Errc::timeout at
/// the deadline; Errc::aborted as soon as `stop` (-1: none) can be read.
Result<void> wait_for(int fd, short events, Deadline deadline, const char* what, int stop = -1);

/// The waits of one transfer. A descriptor that is ready when the deadline has passed is tried once
/// more: what came while this process was stopped counts. One that is ready and moves nothing is
/// late. One that does so again and again (a kernel that is short of memory does) is tried ever
/// more seldom.
class Waits {
 public:
  Waits(int fd, Deadline deadline, const char* what, int stop = -1)
      : fd_(fd), stop_(stop), deadline_(deadline), what_(what) {}
  /// After a try that moved nothing.
  Result<void> wait(short events);
  /// After a try that moved so much.
  Result<void> go_on(std::size_t moved, short events) {
    if (moved == 0) return wait(events);
    vain_ = 0;
    return {};
  }

 private:
  int fd_;
  int stop_;
  Deadline deadline_;
  const char* what_;
  bool late_ = false;
  int vain_ = 0;  // waits in a row
};

/// Milliseconds until the deadline for poll(), rounded up, at most an hour.
int poll_milliseconds(Deadline deadline) noexcept;

}  // namespace gdrx
