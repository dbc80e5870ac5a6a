// SPDX-License-Identifier: Apache-2.0
// The host side of copies: memory that CUDA's driver has pinned, so that a GPU moves it by itself,
// else the program's heap.
#pragma once

#include <cstddef>
#include <utility>

#include "mpi/cuda.hpp"

namespace gdrx::mpi {

/// Pinned memory is kept when it is given back: to pin takes longer than to copy. No more than
/// kMostPinned is taken, in use and kept; beyond that, and where CUDA gives none, it is the heap's.
inline constexpr std::size_t kMostPinned = std::size_t{256} << 20;

class HostMemory {
 public:
  HostMemory() noexcept = default;
  /// For copies of `gpu`. Throws std::bad_alloc.
  HostMemory(std::size_t bytes, const void* gpu);
  HostMemory(HostMemory&& other) noexcept
      : at_(std::exchange(other.at_, nullptr)),
        pinned_(std::exchange(other.pinned_, {})),
        room_(other.room_) {}
  HostMemory& operator=(HostMemory&& other) noexcept {
    std::swap(at_, other.at_);
    std::swap(pinned_, other.pinned_);
    std::swap(room_, other.room_);
    return *this;
  }
  ~HostMemory();
  std::byte* get() const noexcept { return at_; }

 private:
  std::byte* at_ = nullptr;
  Pinned pinned_;         // empty: the heap's
  std::size_t room_ = 0;  // of what is pinned
};

/// Behind MPI_Finalize, while CUDA is there: what is kept goes, and so does what comes back later.
void end_pinned() noexcept;

}  // namespace gdrx::mpi
