// SPDX-License-Identifier: Apache-2.0
// File descriptors from one process of this host to others, over a Unix socket in the abstract
// namespace. Knows nothing of GPUs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"
#include "transport/bootstrap/fork.hpp"

namespace gdrx::gpu {

/// A file descriptor, closed with the object. Children of fork() do not get it: a socket would hide
/// its process's death, an export would hold the GPU's memory.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) { Unforked::keep(fd); }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int fd() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

/// Where a server listens, and what it wants to hear: both random, told to the ranks alone.
struct DescriptorAddress {
  std::array<std::uint8_t, 16> name{};
  std::array<std::uint8_t, 16> nonce{};
};

/// Hands `count` descriptors to each process that knows the nonce and has this user's id, for as
/// long as the object lives. A thread of its own makes them one by one, so that thousands do not
/// meet the limit of open files.
class DescriptorServer {
 public:
  /// Makes descriptor `index`, from the server's thread.
  using Source = std::function<Result<Descriptor>(std::size_t index)>;
  static Result<std::unique_ptr<DescriptorServer>> start(std::size_t count, Source source);
  virtual ~DescriptorServer() = default;  // ends what is under way
  virtual const DescriptorAddress& address() const noexcept = 0;
};

/// Takes them in order. Errc::peer_lost: the server refused this process, or is gone.
Result<void> fetch_descriptors(
    const DescriptorAddress& server, std::size_t count,
    const std::function<Result<void>(std::size_t index, Descriptor descriptor)>& take,
    Deadline deadline);

}  // namespace gdrx::gpu
