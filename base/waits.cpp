// SPDX-License-Identifier: Apache-2.0
#include "gdrx/waits.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>

#include "gdrx/cancel.hpp"

namespace gdrx {
namespace {

constexpr int kPatience = 16;  // waits in vain that cost no sleep
constexpr Duration kFirstPause = std::chrono::microseconds(50);
constexpr Duration kLongestPause = std::chrono::milliseconds(20);

tl::unexpected<Error> no_answer(const char* what) {
  return fail(Errc::timeout, fmt::format("no answer in time while waiting for {}", what));
}

}  // namespace

int poll_milliseconds(Deadline deadline) noexcept {
  const Duration left = deadline.left(steady_clock().now());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(ms, Cancellable::longest_sleep().count()));
}

Result<void> wait_for(int fd, short events, Deadline deadline, const char* what, int stop) {
  while (true) {
    std::array<pollfd, 2> entries{pollfd{fd, events, 0}, pollfd{stop, POLLIN, 0}};
    // A negative descriptor is left out by poll() itself.
    const int ready = poll(entries.data(), entries.size(), poll_milliseconds(deadline));
    if (ready < 0 && errno != EINTR) return fail(Errc::system, "poll", errno);
    if (ready > 0 && entries[1].revents != 0) return fail(Errc::aborted, "stopped");
    if (ready > 0) return {};  // an error shows in the next call
    if (deadline.passed(steady_clock().now())) return no_answer(what);
  }
}

Result<void> Waits::wait(short events) {
  if (late_) return no_answer(what_);
  GDRX_TRY(wait_for(fd_, events, deadline_, what_, stop_));
  const Instant now = steady_clock().now();
  late_ = deadline_.passed(now);
  if (++vain_ <= kPatience || late_) return {};
  const Duration pause = kFirstPause * (1 << std::min(vain_ - kPatience - 1, 10));
  std::this_thread::sleep_for(std::min({pause, kLongestPause, deadline_.left(now)}));
  return {};
}

}  // namespace gdrx
