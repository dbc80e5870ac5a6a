// SPDX-License-Identifier: Apache-2.0
// The messages between a DescriptorServer and those who fetch.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <string>
#include <vector>

#include "collectives/gpu/descriptors.hpp"

namespace gdrx::gpu {

/// Of one message; the kernel takes at most 253.
inline constexpr std::size_t kDescriptorsAtOnce = 16;
inline constexpr std::size_t kLongestReason = 256;

/// The first message of a client.
struct DescriptorRequest {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::array<std::uint8_t, 16> nonce{};
  std::uint64_t count = 0;                             // that the client expects
  static constexpr std::uint32_t kMagic = 0x67647864;  // "gdxd"
  static constexpr std::uint32_t kVersion = 1;
};

/// A message of the server: `count` descriptors, or none and a reason. The client answers each that
/// has some by one byte, so that at most kDescriptorsAtOnce are on their way.
struct DescriptorBatch {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t reason_bytes = 0;
  std::array<char, kLongestReason> reason{};
};

/// An abstract name has no file: nothing is left behind by a killed process.
struct AbstractName {
  explicit AbstractName(const std::array<std::uint8_t, 16>& name);
  const sockaddr* address() const noexcept { return reinterpret_cast<const sockaddr*>(&un); }
  sockaddr_un un{};
  socklen_t length = 0;
};

/// One message. `stop`: a descriptor that ends the wait, or -1. Errc::peer_lost: the other end is
/// closed. Errc::timeout, Errc::aborted.
Result<void> send_message(int fd, const void* data, std::size_t bytes,
                          const std::vector<Descriptor>& descriptors, int stop, Deadline deadline);
/// One message of exactly `bytes`, with the descriptors that came with it.
Result<std::vector<Descriptor>> receive_message(int fd, void* data, std::size_t bytes, int stop,
                                                Deadline deadline);

}  // namespace gdrx::gpu
