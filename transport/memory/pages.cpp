// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/pages.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

namespace gdrx {

Result<Pages> Pages::create(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(Errc::system, fmt::format("mmap of {} bytes", bytes), errno);
  Pages pages;
  pages.bytes_ = {static_cast<std::byte*>(memory), bytes};
  return pages;
}

Pages::~Pages() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace gdrx
