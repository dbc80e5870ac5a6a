// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>

#include "collectives/reduce/reducer.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gdrx::reduce {
namespace {

#if defined(__x86_64__)
// Below this the set-up and the fence cost more than the saved read of the target.
constexpr std::size_t kLeastStreaming = 4096;

// Target aligned to 64 bytes, whole lines. Stores go round the cache: no read for ownership.
__attribute__((target("avx512f"))) void stream_512(std::byte* to, const std::byte* from,
                                                   std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 64 * i), _mm512_loadu_si512(from + 64 * i));
  }
}

void stream_128(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < 4 * lines; ++i) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i,
                     _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from) + i));
  }
}

void stream(std::byte* to, const std::byte* from, std::size_t lines) {
  static const bool wide = __builtin_cpu_supports("avx512f") != 0;
  if (wide) {
    stream_512(to, from, lines);
  } else {
    stream_128(to, from, lines);
  }
  _mm_sfence();  // before whatever tells another thread that the bytes are there
}
#else
constexpr std::size_t kLeastStreaming = SIZE_MAX;
void stream(std::byte*, const std::byte*, std::size_t) {}
#endif

}  // namespace

void copy(void* dst, const void* src, std::size_t bytes, bool streaming) noexcept {
  if (bytes == 0) return;  // null pointers are allowed then
  if (!streaming || bytes < kLeastStreaming) {
    std::memcpy(dst, src, bytes);
    return;
  }
  auto* to = static_cast<std::byte*>(dst);
  const auto* from = static_cast<const std::byte*>(src);
  const std::size_t head = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64;
  const std::size_t lines = (bytes - head) / 64;
  const std::size_t tail = head + 64 * lines;
  std::memcpy(to, from, head);
  stream(to + head, from + head, lines);
  std::memcpy(to + tail, from + tail, bytes - tail);
}

}  // namespace gdrx::reduce
