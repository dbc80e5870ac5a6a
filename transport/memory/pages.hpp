// SPDX-License-Identifier: Apache-2.0
// Whole pages of our own, zero at first, committed where they are touched. No registration of them
// shares a page with anything else of the process, which a fork could otherwise take away.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "gdrx/result.hpp"

namespace gdrx {

class Pages {
 public:
  Pages() = default;
  static Result<Pages> create(std::size_t bytes);
  Pages(Pages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  std::byte* data() const noexcept { return bytes_.data(); }

 private:
  std::span<std::byte> bytes_;
};

/// Has the pages that these bytes are in committed at once, for writing, where the kernel can do
/// that (Linux 5.14). Else each is when it is touched.
void commit(std::span<std::byte> memory) noexcept;

}  // namespace gdrx
