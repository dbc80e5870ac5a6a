// SPDX-License-Identifier: Apache-2.0
// Pages of our own for a NIC: zero at first, whole pages, so that no registration shares one with
// anything else of the process.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "gdrx/result.hpp"

namespace gdrx::verbs {

class Buffer {
 public:
  Buffer() = default;
  static Result<Buffer> create(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail(Errc::system, "mmap", errno);
    Buffer buffer;
    buffer.bytes_ = {static_cast<std::byte*>(memory), bytes};
    return buffer;
  }
  Buffer(Buffer&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  }
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  std::byte* data() const noexcept { return bytes_.data(); }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace gdrx::verbs
