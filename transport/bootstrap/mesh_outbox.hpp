// SPDX-License-Identifier: Apache-2.0
// What a link has no room for now, with memory in reserve for words that must go out at an end,
// though there is none left by then.
#pragma once

#include <cstddef>
#include <span>

#include "gdrx/bootstrap.hpp"

namespace gdrx {

class Outbox {
 public:
  /// From here on so many bytes more can be put by put_promised(), whatever else is put.
  void promise(std::size_t bytes) {
    make_room(bytes + kUsual);
    promised_ += bytes;
  }
  void release(std::size_t bytes) noexcept { promised_ -= bytes; }

  /// std::bad_alloc leaves where it has no room beside what is promised; then nothing has changed.
  void put(std::span<const std::byte> bytes) {
    make_room(bytes.size());
    append(bytes);
  }
  void put_promised(std::span<const std::byte> bytes) noexcept { append(bytes); }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_.empty(); }
  /// Of the front: they have gone.
  void drop(std::size_t bytes) noexcept {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(bytes));
  }

 private:
  static constexpr std::size_t kUsual = 2048;  // what is said beside it, mostly

  void make_room(std::size_t bytes) {
    const std::size_t whole = bytes_.size() + bytes;
    if (whole + promised_ > bytes_.capacity()) bytes_.reserve(2 * whole + promised_);
  }
  void append(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  Blob bytes_;
  std::size_t promised_ = 0;  // what has been put of it counts as long as it is not released
};

}  // namespace gdrx
