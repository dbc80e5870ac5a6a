// SPDX-License-Identifier: Apache-2.0
// What a call holds until it is done, and what is left to do then.
#pragma once

#include <memory>
#include <vector>

#include "mpi/plan.hpp"

namespace gdrx::mpi {

/// Memory of a side that is packed: grown when it must be, kept with its communicator.
class Scratch {
 public:
  std::byte* of(std::size_t bytes) {
    if (bytes > size_) {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      size_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

/// A side as gdrx gets it.
struct Bytes {
  std::byte* at = nullptr;
  std::size_t block = 0;                // bytes of each block
  const std::size_t* counts = nullptr;  // or of each its own
  const std::size_t* places = nullptr;
  bool packed = false;  // `at` is not the program's

  std::byte* begin_of(int block_number) const noexcept {
    const auto i = static_cast<std::size_t>(block_number);
    return at + (places != nullptr ? places[i] : i * block);
  }
};

struct Work {
  Scratch packed_in;
  Scratch packed_out;
  std::vector<std::size_t> lists;  // four of the communicator's ranks
  // In the end.
  Side out;  // is unpacked from `bytes`, if that is packed
  Bytes bytes;
  const void* moved_from = nullptr;
  void* moved_to = nullptr;
  std::size_t moved = 0;
};

}  // namespace gdrx::mpi
