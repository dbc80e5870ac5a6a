// SPDX-License-Identifier: Apache-2.0
// Bytes on their way through a block of fixed size: put in at its end, taken from its beginning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace gdrx {

class ByteWindow {
 public:
  /// Of which no page is touched before it is used.
  explicit ByteWindow(std::size_t size)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), most_(size) {}

  std::span<const std::byte> full() const noexcept { return {bytes_.get() + begin_, size()}; }
  std::size_t size() const noexcept { return end_ - begin_; }
  std::size_t room() const noexcept { return most_ - size(); }
  std::span<std::byte> full() noexcept { return {bytes_.get() + begin_, size()}; }
  /// Room for `bytes` in one piece, if there is so much.
  std::span<std::byte> space_for(std::size_t bytes) noexcept {
    return bytes <= most_ - end_ ? all().subspan(end_) : space();
  }
  /// All the room there is, in one piece.
  std::span<std::byte> space() noexcept {
    if (begin_ > 0) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, size());
      end_ -= std::exchange(begin_, 0);
    }
    return all().subspan(end_);
  }
  /// Says that so much of space() was filled.
  void put(std::size_t bytes) noexcept { end_ += std::min(bytes, most_ - end_); }
  void take(std::size_t bytes) noexcept {
    begin_ += std::min(bytes, size());
    if (begin_ == end_) begin_ = end_ = 0;
  }
  /// As much as there is room for; returns how much.
  std::size_t append(std::span<const std::byte> from) noexcept {
    const auto to = space_for(from.size());
    const std::size_t some = std::min(to.size(), from.size());
    if (some > 0) std::memcpy(to.data(), from.data(), some);
    put(some);
    return some;
  }

 private:
  std::span<std::byte> all() const noexcept { return {bytes_.get(), most_}; }
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t most_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace gdrx
