// SPDX-License-Identifier: Apache-2.0
// GPU memory that NICs read and write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// Borrowed from a pool of the process, and given back when the object goes: to free GPU memory
/// waits for all kernels of the GPU, and some may be waiting for whoever frees.
class RailMemory {
 public:
  /// Of the current device, zero at first.
  static Result<std::unique_ptr<RailMemory>> borrow(std::uint64_t bytes);
  ~RailMemory();
  RailMemory(const RailMemory&) = delete;
  RailMemory& operator=(const RailMemory&) = delete;

  std::span<std::byte> bytes() const noexcept { return {data_, bytes_}; }

 private:
  RailMemory() = default;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  int device_ = 0;
};

}  // namespace gdrx::gpu
