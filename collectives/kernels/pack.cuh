// SPDX-License-Identifier: Apache-2.0
// Packs: to and from a user's buffer of any alignment, and to and from slots that a peer shares.
#pragma once

#include <cstdint>

#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

// PTX gives 128-bit scalars single-copy atomicity: a reader sees all of a pack or none of it.
__device__ __forceinline__ void store_shared(Pack* at, Pack value) {
  asm volatile(
      "{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.sys.global.b128 [%0], v; }" ::"l"(at),
      "l"(value.low), "l"(value.high)
      : "memory");
}

__device__ __forceinline__ Pack load_shared(const Pack* at) {
  Pack value;
  asm volatile("{ .reg .b128 v; ld.relaxed.sys.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
               : "=l"(value.low), "=l"(value.high)
               : "l"(at)
               : "memory");
  return value;
}

__device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

__device__ __forceinline__ bool is_sentinel(Pack value) {
  return value.low == kSentinelLow && value.high == kSentinelHigh;
}

/// Where the escape byte of a slot lies.
__device__ __forceinline__ std::uint8_t* escape_of(std::uint8_t* arena, std::uint32_t slot) {
  return arena + kEscapesAt + slot;
}

__device__ __forceinline__ Pack* slot_of(std::uint8_t* arena, std::uint32_t slot) {
  return reinterpret_cast<Pack*>(arena + kSlotsAt) + slot;
}

// Data whose lower half is the sentinel's: rare, or an adversary's. The byte is visible before the
// pack.
inline __device__ __noinline__ void send_rare(std::uint8_t* arena, std::uint32_t slot, Pack value) {
  if (value.high == kSentinelHigh || value.high == kEscapeHigh) {
    const std::uint32_t meaning = value.high == kSentinelHigh ? 1 : 2;
    asm volatile("st.relaxed.sys.global.u8 [%0], %1;" ::"l"(escape_of(arena, slot)), "r"(meaning)
                 : "memory");
    fence_system();
    value.high = kEscapeHigh;
  }
  store_shared(slot_of(arena, slot), value);
}

inline __device__ __noinline__ Pack receive_rare(std::uint8_t* arena, std::uint32_t slot,
                                                 Pack value) {
  if (value.high != kEscapeHigh) return value;
  fence_system();
  std::uint32_t meaning;
  asm volatile("ld.relaxed.sys.global.u8 %0, [%1];"
               : "=r"(meaning)
               : "l"(escape_of(arena, slot))
               : "memory");
  return {kSentinelLow, meaning == 1 ? kSentinelHigh : kEscapeHigh};
}

__device__ __forceinline__ void send(std::uint8_t* arena, std::uint32_t slot, Pack value) {
  if (value.low == kSentinelLow) {
    send_rare(arena, slot, value);
  } else {
    store_shared(slot_of(arena, slot), value);
  }
}

/// What a slot's pack means, after it was seen to be no sentinel; the slot is empty again.
__device__ __forceinline__ Pack take(std::uint8_t* arena, std::uint32_t slot, Pack value) {
  if (value.low == kSentinelLow) value = receive_rare(arena, slot, value);
  store_shared(slot_of(arena, slot), {kSentinelLow, kSentinelHigh});
  return value;
}

/// A user's buffer as packs. The last one may be short; what is past the end reads as zero.
class UserBuffer {
 public:
  __device__ UserBuffer(const void* data, std::uint64_t bytes)
      : data_(static_cast<const std::uint8_t*>(data)),
        bytes_(bytes),
        aligned_(reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack) == 0),
        words_(reinterpret_cast<std::uintptr_t>(data) % 4 == 0 && bytes % 4 == 0) {}

  __device__ __forceinline__ Pack load(std::uint64_t pack) const {
    const std::uint64_t at = pack * sizeof(Pack);
    if (aligned_ && at + sizeof(Pack) <= bytes_) {
      return *reinterpret_cast<const Pack*>(data_ + at);
    }
    return load_rest(at);
  }

  __device__ __forceinline__ void store(std::uint64_t pack, Pack value) const {
    const std::uint64_t at = pack * sizeof(Pack);
    if (aligned_ && at + sizeof(Pack) <= bytes_) {
      *reinterpret_cast<Pack*>(const_cast<std::uint8_t*>(data_) + at) = value;
    } else {
      store_rest(at, value);
    }
  }

 private:
  // The short end of a buffer, or a buffer of odd alignment: in words if they fit, else in bytes.
  __device__ __noinline__ Pack load_rest(std::uint64_t at) const {
    Pack value{0, 0};
    if (words_) {
#pragma unroll  // all loads at once
      for (std::uint64_t i = 0; i < sizeof(Pack); i += 4) {
        if (at + i >= bytes_) continue;
        const std::uint64_t word = *reinterpret_cast<const std::uint32_t*>(data_ + at + i);
        (i < 8 ? value.low : value.high) |= word << (i % 8 * 8);
      }
      return value;
    }
#pragma unroll
    for (std::uint64_t i = 0; i < sizeof(Pack); ++i) {
      const std::uint64_t byte = at + i < bytes_ ? data_[at + i] : 0;
      (i < 8 ? value.low : value.high) |= byte << (i % 8 * 8);
    }
    return value;
  }
  __device__ __noinline__ void store_rest(std::uint64_t at, Pack value) const {
    auto* to = const_cast<std::uint8_t*>(data_) + at;
    const std::uint64_t step = words_ ? 4 : 1;
    for (std::uint64_t i = 0; i < sizeof(Pack) && at + i < bytes_; i += step) {
      const std::uint64_t rest = (i < 8 ? value.low : value.high) >> (i % 8 * 8);
      if (words_) {
        *reinterpret_cast<std::uint32_t*>(to + i) = static_cast<std::uint32_t>(rest);
      } else {
        to[i] = static_cast<std::uint8_t>(rest);
      }
    }
  }

  const std::uint8_t* data_;
  std::uint64_t bytes_;
  bool aligned_;
  bool words_;
};

}  // namespace gdrx::gpu
