// SPDX-License-Identifier: Apache-2.0
// A write into memory that its reader maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gdrx/transport.hpp"

namespace gdrx::shm {

/// A word of eight bytes, such as a credit, is read while it is written: at once or not at all.
inline bool is_a_word(const WriteOp& op, const std::byte* to) noexcept {
  return op.header.size() == sizeof(std::uint64_t) && op.payload.empty() &&
         reinterpret_cast<std::uintptr_t>(to) % sizeof(std::uint64_t) == 0;
}

inline void put(const WriteOp& op, std::byte* to) noexcept {
  if (is_a_word(op, to)) {
    std::uint64_t word = 0;
    std::memcpy(&word, op.header.data(), sizeof word);
    // release: pairs with the reader's acquire. A credit says that what was read may be written.
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(to))
        .store(word, std::memory_order_release);
    return;
  }
  if (!op.header.empty()) std::memcpy(to, op.header.data(), op.header.size());
  if (!op.payload.empty()) {
    std::memcpy(to + op.header.size(), op.payload.data(), op.payload.size());
  }
}

}  // namespace gdrx::shm
