// SPDX-License-Identifier: Apache-2.0
// What is behind an emulated GPU's addresses.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>

#include "tests/emulated/cuda/state.hpp"

namespace gdrx::emulated {

inline constexpr std::size_t kPage = 4096;

/// All that a process may have on its GPUs, and what it has made.
inline constexpr std::size_t kMemory = std::size_t{64} << 30;
inline std::atomic<std::size_t> used{0};

/// A memfd, and what a handle of cuMemCreate says of it.
class File {
 public:
  File(int fd, std::size_t bytes) : fd_(fd), bytes_(bytes) {}
  static std::shared_ptr<File> create(std::size_t bytes) {
    if (bytes > kMemory) return nullptr;
    const int fd = memfd_create("emulated-gpu", MFD_CLOEXEC);
    if (fd < 0) return nullptr;
    auto file = std::make_shared<File>(fd, bytes);
    used += file->made_here_ = bytes;
    return ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? file : nullptr;
  }
  ~File() {
    close(fd_);
    used -= made_here_;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }
  std::size_t bytes() const { return bytes_; }
  CUmemAllocationProp made{};

 private:
  int fd_;
  std::size_t bytes_;
  std::size_t made_here_ = 0;  // 0: another process's
};

/// A handle of cuMemCreate: a reference.
using Handle = std::shared_ptr<File>;

std::byte* map(const File& file, std::byte* at, int protection);
void put(const Range& range);
/// The range that begins there and is of that kind, no longer known.
std::optional<Range> take(const void* begin, Kind kind);

inline void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace gdrx::emulated
