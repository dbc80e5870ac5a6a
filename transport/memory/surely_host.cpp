// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/surely_host.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "transport/memory/cuda_memory.hpp"

namespace gdrx {
namespace {

// Fields of /proc/self/stat, whose second, the program's name, ends with the last bracket.
constexpr int kBehindTheName = 3;
constexpr int kStartOfStack = 28;
constexpr int kStartOfBreak = 47;

// Of the first thread's stack. Linux keeps more than this free of mappings below its beginning, 128
// MiB at least.
constexpr std::uintptr_t kStack = 8 * 1024 * 1024;

// Nothing is believed beyond it, whatever somebody says who stands in for sbrk().
constexpr std::uintptr_t kMostHeap = std::uintptr_t{1} << 38;
const void* const kNoBreak = reinterpret_cast<void*>(-1);

struct Places {
  std::uintptr_t heap = UINTPTR_MAX;  // its first address; the highest of all: nobody knows
  std::uintptr_t stack_begin = 0;     // equal: nobody knows
  std::uintptr_t stack_end = 0;
};

Places find() noexcept {
  Places found;
  std::array<char, 2048> text{};
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return found;
  const ssize_t length = read(file, text.data(), text.size() - 1);
  close(file);
  const char* at = length > 0 ? std::strrchr(text.data(), ')') : nullptr;
  for (int field = kBehindTheName; at != nullptr && field <= kStartOfBreak; ++field) {
    at = std::strchr(at + 1, ' ');
    if (at == nullptr || (field != kStartOfStack && field != kStartOfBreak)) continue;
    const std::uintptr_t value = std::strtoull(at, nullptr, 10);
    if (value == 0) continue;  // a container's rules hide it
    if (field == kStartOfBreak) {
      found.heap = value;
    } else if (value > kStack) {
      found.stack_begin = value - kStack;
      found.stack_end = value;
    }
  }
  return found;
}

}  // namespace

bool is_on_heap_or_stack(const void* address) noexcept {
  static const Places places = find();
  const auto asked = reinterpret_cast<std::uintptr_t>(address);
  if (asked - places.stack_begin < places.stack_end - places.stack_begin) return true;
  if (asked < places.heap || asked - places.heap > kMostHeap) return false;
  void* const end = sbrk(0);  // of 0 it is no system call
  return end != kNoBreak && asked < reinterpret_cast<std::uintptr_t>(end);
}

bool are_surely_host(const void* one, const void* other) noexcept {
  const bool known = (one == nullptr || is_on_heap_or_stack(one)) &&
                     (other == nullptr || is_on_heap_or_stack(other));
  return known || !cuda::is_loaded();
}

}  // namespace gdrx
