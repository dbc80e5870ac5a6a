// SPDX-License-Identifier: Apache-2.0
// Lines of one cause, which a peer or a stranger may bring about as often as he likes.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gdrx/clock.hpp"
#include "gdrx/log.hpp"

namespace gdrx {

/// The first lines pass at once, then one a second, which says how many were left out before it.
/// Any thread.
class LogLimit {
 public:
  explicit LogLimit(std::uint32_t at_once = 1) noexcept : most_(at_once), left_(at_once) {}

  template <class... Args>
  void warn(const Log& log, Instant now, fmt::format_string<Args...> text, Args&&... args) {
    if (!log.enabled(Level::warn)) return;
    const auto left_out = admit(now);
    if (!left_out) return;
    const std::string line = fmt::format(text, std::forward<Args>(args)...);
    if (*left_out == 0) return log.warn("{}", line);
    log.warn("{} (and {} such lines before it)", line, *left_out);
  }

  /// May a line be written now? How many were not since the last one.
  std::optional<std::uint64_t> admit(Instant now) noexcept {
    constexpr Duration kEvery = std::chrono::seconds(1);
    const std::lock_guard lock(mutex_);
    if (left_ < most_ && now >= since_ + kEvery) {
      const auto earned = static_cast<std::uint64_t>((now - since_) / kEvery);
      left_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(most_, left_ + earned));
      since_ = now;
    }
    if (left_ == 0) {
      ++left_out_;
      return std::nullopt;
    }
    if (left_-- == most_) since_ = now;
    return std::exchange(left_out_, 0);
  }

 private:
  std::mutex mutex_;
  std::uint32_t most_;
  std::uint32_t left_;
  Instant since_{};  // the last line was earned, or the first one spent
  std::uint64_t left_out_ = 0;
};

}  // namespace gdrx
