// SPDX-License-Identifier: Apache-2.0
// The end of an operation, and the one call of its handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "gdrx/result.hpp"

namespace gdrx {

/// One thread finishes it and one arms it, at any times; whichever comes second has the handler
/// called.
class Ending {
 public:
  /// Throws nothing that is heard of.
  using Handler = std::function<void(const std::optional<Error>&)>;

  bool done() const noexcept { return (state() & kDone) != 0; }
  /// Publishes the error and what else the operation has written. True: the handler is due, and
  /// tell() is the caller's to see to. Again: nothing.
  [[nodiscard]] bool finish() noexcept {
    return (state_.fetch_or(kDone, std::memory_order_acq_rel) & (kArmed | kDone)) == kArmed;
  }
  /// Once. True: it is done already, and tell() is the caller's to see to.
  [[nodiscard]] bool arm(Handler handler);
  bool armed() const noexcept { return (state() & kArmed) != 0; }
  /// Calls the handler. Once, by who was told that it is due.
  void tell(const std::optional<Error>& error) noexcept;
  /// Done, and the handler, if there is one, has returned or is what calls this.
  bool over() const noexcept;
  /// Until it is over(). If it is not done: until somebody finishes it and calls wake().
  void await_over() const noexcept;
  void wake() noexcept { state_.notify_all(); }
  /// Whose operation it is; before it is shared.
  void set_owner(const void* owner) noexcept { owner_ = owner; }

 private:
  static constexpr std::uint32_t kDone = 1;
  static constexpr std::uint32_t kArmed = 2;
  static constexpr std::uint32_t kTold = 4;

  bool is_over(std::uint32_t now) const noexcept;
  std::uint32_t state() const noexcept { return state_.load(std::memory_order_acquire); }

  std::atomic<std::uint32_t> state_{0};
  const void* owner_ = nullptr;
  Handler handler_;
};

}  // namespace gdrx
