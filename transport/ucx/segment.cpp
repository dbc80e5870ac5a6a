// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/segment.hpp"

#include <sys/shm.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace gdrx::ucx {

// "7f1c9a400000-7f1c9a500000 rw-s 00000000 00:01 65538   /SYSV00000000 (deleted)": the number of a
// segment is that of its inode (proc(5), shmget(2)).
std::int32_t segment_at(const void* address) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                   &std::fclose);
  if (!maps) return -1;
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), maps.get()) != nullptr) {
    if (std::strtoul(line.data(), nullptr, 16) != wanted) continue;
    std::int32_t inode = -1;
    int name = 0;
    if (std::sscanf(line.data(), "%*x-%*x %*s %*x %*s %d %n", &inode, &name) < 1) return -1;
    return std::strncmp(line.data() + name, "/SYSV", 5) == 0 ? inode : -1;
  }
  return -1;
}

HeldSegment::HeldSegment(std::int32_t segment) noexcept {
  void* at = shmat(segment, nullptr, SHM_RDONLY);
  if (at != reinterpret_cast<void*>(-1)) at_ = at;
}

HeldSegment::~HeldSegment() {
  if (at_ != nullptr) shmdt(at_);
}

}  // namespace gdrx::ucx
