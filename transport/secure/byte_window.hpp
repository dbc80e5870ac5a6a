// SPDX-License-Identifier: Apache-2.0
// Bytes on their way through a block of fixed size: put in at its end, taken from its beginning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace gdrx {

class ByteWindow {
 public:
  explicit ByteWindow(std::size_t size) : bytes_(size) {}

  std::span<const std::byte> full() const noexcept {
    return std::span(bytes_).subspan(begin_, size());
  }
  std::size_t size() const noexcept { return end_ - begin_; }
  std::size_t room() const noexcept { return bytes_.size() - size(); }
  /// All the room there is, in one piece.
  std::span<std::byte> space() noexcept {
    if (begin_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + begin_, size());
      end_ -= std::exchange(begin_, 0);
    }
    return std::span(bytes_).subspan(end_);
  }
  /// Says that so much of space() was filled.
  void put(std::size_t bytes) noexcept { end_ += std::min(bytes, bytes_.size() - end_); }
  void take(std::size_t bytes) noexcept {
    begin_ += std::min(bytes, size());
    if (begin_ == end_) begin_ = end_ = 0;
  }
  /// As much as there is room for; returns how much.
  std::size_t append(std::span<const std::byte> from) noexcept {
    const bool fits_behind = from.size() <= bytes_.size() - end_;
    const auto to = fits_behind ? std::span(bytes_).subspan(end_) : space();
    const std::size_t some = std::min(to.size(), from.size());
    if (some > 0) std::memcpy(to.data(), from.data(), some);
    put(some);
    return some;
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace gdrx
