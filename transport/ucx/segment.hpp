// SPDX-License-Identifier: Apache-2.0
// System V shared memory, which UCX allocates for what peers of this host write to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gdrx::ucx {

/// The segment that is mapped at this address in this process; negative: none, or that is not
/// known.
std::int32_t segment_at(const void* address);

/// Keeps a segment, which else ends with its last process. It may be of another one, which has told
/// its number: whether it is there is asked of the kernel.
class HeldSegment {
 public:
  explicit HeldSegment(std::int32_t segment) noexcept;
  ~HeldSegment();
  HeldSegment(const HeldSegment&) = delete;
  HeldSegment& operator=(const HeldSegment&) = delete;
  bool is_there() const noexcept { return at_ != nullptr; }

 private:
  void* at_ = nullptr;
};

}  // namespace gdrx::ucx
