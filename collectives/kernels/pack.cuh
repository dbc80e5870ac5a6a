// SPDX-License-Identifier: Apache-2.0
// Packs: to and from a user's buffer of any alignment, and to and from slots that a peer shares.
#pragma once

#include <cstdint>

#include "collectives/kernels/device.cuh"
#include "collectives/kernels/shape.hpp"

namespace gdrx::gpu {

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
    store_shared(escape_of(arena, slot), meaning);
    fence_system();  // the byte is there before the pack that has it read
    value.high = kEscapeHigh;
  }
  store_shared(slot_of(arena, slot), value);
}

inline __device__ __noinline__ Pack receive_rare(std::uint8_t* arena, std::uint32_t slot,
                                                 Pack value) {
  if (value.high != kEscapeHigh) return value;
  fence_system();  // pairs with the sender's: the byte is no older than the pack
  const std::uint32_t meaning = load_shared(escape_of(arena, slot));
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

/// A user's buffer of one to three words at addresses of theirs, in line, without branches: a
/// function called costs a kernel of so few bytes a fifth of its time.
class Words {
 public:
  __device__ __forceinline__ Words(const void* data, std::uint64_t bytes)
      : data_(worked_out(static_cast<const std::uint32_t*>(data))),
        words_(worked_out(static_cast<std::uint32_t>(bytes / 4))) {}

  /// Zero if not `wanted`, as what is past the end.
  __device__ __forceinline__ Pack load(std::uint32_t wanted) const {
    std::uint32_t word[3];
#pragma unroll
    for (std::uint32_t i = 0; i < 3; ++i) {
      word[i] = load_if_below(i, wanted != 0 ? words_ : 0, data_ + i);
    }
    return {std::uint64_t{word[1]} << 32 | word[0], word[2]};
  }
  __device__ __forceinline__ void store(Pack value) const {
    const std::uint64_t parts[] = {value.low, value.low >> 32, value.high};
#pragma unroll
    for (std::uint32_t i = 0; i < 3; ++i) {
      store_if_below(i, words_, const_cast<std::uint32_t*>(data_) + i,
                     static_cast<std::uint32_t>(parts[i]));
    }
  }

 private:
  const std::uint32_t* data_;
  std::uint32_t words_;
};

/// A buffer's bytes from `begin` to `end` go in words.
inline __device__ bool go_in_words(const std::uint8_t* data, std::uint64_t begin,
                                   std::uint64_t end) {
  return (reinterpret_cast<std::uintptr_t>(data) | begin | end) % 4 == 0;
}

/// The short ends of what is stored, or a buffer of odd alignment: in words if they fit, else in
/// bytes. What lies outside is left alone.
inline __device__ __noinline__ void store_rest(std::uint8_t* data, std::uint64_t begin,
                                               std::uint64_t end, std::uint64_t at, Pack value) {
  const bool words = go_in_words(data, begin, end);
  const std::uint64_t step = words ? 4 : 1;
  for (std::uint64_t i = 0; i < sizeof(Pack) && at + i < end; i += step) {
    if (at + i < begin) continue;
    const std::uint64_t rest = (i < 8 ? value.low : value.high) >> (i % 8 * 8);
    if (words) {
      *reinterpret_cast<std::uint32_t*>(data + at + i) = static_cast<std::uint32_t>(rest);
    } else {
      data[at + i] = static_cast<std::uint8_t>(rest);
    }
  }
}

/// A user's buffer as packs. The last one may be short; what is past the end reads as zero.
class UserBuffer {
 public:
  __device__ __forceinline__ UserBuffer(const void* data, std::uint64_t bytes)
      : data_(static_cast<const std::uint8_t*>(data)),
        bytes_(bytes),
        whole_(reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack) == 0 ? bytes / sizeof(Pack)
                                                                          : 0) {}

  /// Whether the pack is 16 bytes at an address of theirs: at place() then.
  __device__ __forceinline__ bool is_plain(std::uint64_t pack) const { return pack < whole_; }
  __device__ __forceinline__ const Pack* place(std::uint64_t pack) const {
    return reinterpret_cast<const Pack*>(data_) + pack;
  }

  __device__ __forceinline__ Pack load(std::uint64_t pack) const {
    if (is_plain(pack)) return *place(pack);
    return load_rest(data_, bytes_, pack * sizeof(Pack));
  }

  __device__ __forceinline__ void store(std::uint64_t pack, Pack value) const {
    if (is_plain(pack)) {
      *const_cast<Pack*>(place(pack)) = value;
    } else {
      store_rest(const_cast<std::uint8_t*>(data_), 0, bytes_, pack * sizeof(Pack), value);
    }
  }

 private:
  // The short end of a buffer, or a buffer of odd alignment: in words if they fit, else in bytes.
  static __device__ __noinline__ Pack load_rest(const std::uint8_t* data, std::uint64_t bytes,
                                                std::uint64_t at) {
    Pack value{0, 0};
    if (go_in_words(data, 0, bytes)) {
#pragma unroll  // all loads at once
      for (std::uint64_t i = 0; i < sizeof(Pack); i += 4) {
        if (at + i >= bytes) continue;
        const std::uint64_t word = *reinterpret_cast<const std::uint32_t*>(data + at + i);
        (i < 8 ? value.low : value.high) |= word << (i % 8 * 8);
      }
      return value;
    }
#pragma unroll
    for (std::uint64_t i = 0; i < sizeof(Pack); ++i) {
      const std::uint64_t byte = at + i < bytes ? data[at + i] : 0;
      (i < 8 ? value.low : value.high) |= byte << (i % 8 * 8);
    }
    return value;
  }
  const std::uint8_t* data_;
  std::uint64_t bytes_;
  std::uint64_t whole_;  // packs of 16 bytes at addresses of theirs
};

}  // namespace gdrx::gpu
