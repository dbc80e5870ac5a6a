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

// Data that looks like the sentinel: rare, or an adversary's. The byte is visible before the pack.
inline __device__ __noinline__ void send_escaped(std::uint8_t* arena, std::uint32_t slot,
                                                 Pack value) {
  const std::uint32_t meaning = value.high == kSentinelHigh ? 1 : 2;
  asm volatile("st.relaxed.sys.global.u8 [%0], %1;" ::"l"(escape_of(arena, slot)), "r"(meaning)
               : "memory");
  fence_system();
  store_shared(slot_of(arena, slot), {kSentinelLow, kEscapeHigh});
}

inline __device__ __noinline__ Pack receive_escaped(std::uint8_t* arena, std::uint32_t slot) {
  fence_system();
  std::uint32_t meaning;
  asm volatile("ld.relaxed.sys.global.u8 %0, [%1];"
               : "=r"(meaning)
               : "l"(escape_of(arena, slot))
               : "memory");
  return {kSentinelLow, meaning == 1 ? kSentinelHigh : kEscapeHigh};
}

__device__ __forceinline__ void send(std::uint8_t* arena, std::uint32_t slot, Pack value) {
  if (value.low == kSentinelLow && (value.high == kSentinelHigh || value.high == kEscapeHigh)) {
    send_escaped(arena, slot, value);
  } else {
    store_shared(slot_of(arena, slot), value);
  }
}

/// What a slot's pack means, after it was seen to be no sentinel; the slot is empty again.
__device__ __forceinline__ Pack take(std::uint8_t* arena, std::uint32_t slot, Pack value) {
  if (value.low == kSentinelLow && value.high == kEscapeHigh) value = receive_escaped(arena, slot);
  store_shared(slot_of(arena, slot), {kSentinelLow, kSentinelHigh});
  return value;
}

/// A user's buffer as packs. The last one may be short; what is past the end reads as zero.
class UserBuffer {
 public:
  __device__ UserBuffer(const void* data, std::uint64_t bytes)
      : data_(static_cast<const std::uint8_t*>(data)),
        bytes_(bytes),
        aligned_(reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack) == 0) {}

  __device__ __forceinline__ Pack load(std::uint64_t pack) const {
    const std::uint64_t at = pack * sizeof(Pack);
    if (aligned_ && at + sizeof(Pack) <= bytes_) {
      return *reinterpret_cast<const Pack*>(data_ + at);
    }
    return load_bytes(at);
  }

  __device__ __forceinline__ void store(std::uint64_t pack, Pack value) const {
    const std::uint64_t at = pack * sizeof(Pack);
    if (aligned_ && at + sizeof(Pack) <= bytes_) {
      *reinterpret_cast<Pack*>(const_cast<std::uint8_t*>(data_) + at) = value;
    } else {
      store_bytes(at, value);
    }
  }

 private:
  __device__ __noinline__ Pack load_bytes(std::uint64_t at) const {
    Pack value{0, 0};
    for (std::uint64_t i = 0; i < sizeof(Pack) && at + i < bytes_; ++i) {
      const std::uint64_t byte = data_[at + i];
      (i < 8 ? value.low : value.high) |= byte << (i % 8 * 8);
    }
    return value;
  }
  __device__ __noinline__ void store_bytes(std::uint64_t at, Pack value) const {
    for (std::uint64_t i = 0; i < sizeof(Pack) && at + i < bytes_; ++i) {
      const_cast<std::uint8_t*>(data_)[at + i] =
          static_cast<std::uint8_t>((i < 8 ? value.low : value.high) >> (i % 8 * 8));
    }
  }

  const std::uint8_t* data_;
  std::uint64_t bytes_;
  bool aligned_;
};

}  // namespace gdrx::gpu
