// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/pages.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

namespace gdrx {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE: C libraries may be older than kernels
constexpr std::uintptr_t kSmallPage = 4096;

}  // namespace

Result<Pages> Pages::create(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(Errc::system, fmt::format("mmap of {} bytes", bytes), errno);
  Pages pages;
  pages.bytes_ = {static_cast<std::byte*>(memory), bytes};
  return pages;
}

void commit(std::span<std::byte> memory) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data()) / kSmallPage * kSmallPage;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size();
  const int before = errno;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, kPopulateWrite);
  errno = before;
}

Pages::~Pages() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace gdrx
