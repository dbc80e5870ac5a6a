// SPDX-License-Identifier: Apache-2.0
// What the tcp fabric says: before a connection carries writes, and in front of each of them.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "gdrx/transport.hpp"
#include "transport/bootstrap/socket.hpp"
#include "transport/secure/key.hpp"

namespace gdrx::tcp {

inline constexpr std::uint32_t kMagic = 0x31746467;  // "gdt1"

/// Device::address(). Whoever has it may connect: it goes over connections that hide it.
struct Address {
  std::uint32_t magic = kMagic;
  std::int32_t rank = 0;
  SocketAddress at;
  std::uint32_t plain = 0;  // 1: this device's connections are not encrypted
  std::array<std::byte, Key::kBytes> key{};
};
static_assert(sizeof(Address) == 64 && std::is_trivially_copyable_v<Address>);

/// MemoryRegion::export_key().
struct RegionKey {
  std::uint32_t magic = kMagic;
  std::uint32_t region = 0;
  std::uint64_t nonce = 0;  // a stale or guessed key is refused
  std::uint64_t length = 0;
};
static_assert(sizeof(RegionKey) == 24 && std::is_trivially_copyable_v<RegionKey>);

using Nonce = std::array<std::byte, 16>;

/// The first that an acceptor says, to whoever connects.
struct Challenge {
  std::uint32_t magic = kMagic;
  std::uint32_t plain = 0;
  Nonce nonce{};
};
static_assert(sizeof(Challenge) == 24 && std::is_trivially_copyable_v<Challenge>);

/// The connector's answer. A proof of the acceptor's key that fits this challenge alone.
struct Knock {
  std::uint32_t magic = kMagic;
  std::int32_t from = 0;  // ranks
  std::int32_t to = 0;
  std::uint32_t plain = 0;
  Nonce nonce{};
  Nonce tag{};  // of both devices' keys: who knows the connector's address can check it
  std::array<std::byte, Key::kBytes> proof{};
};
static_assert(sizeof(Knock) == 80 && std::is_trivially_copyable_v<Knock>);

enum class Verdict : std::uint32_t {
  welcome,
  crossed,  // the acceptor's own connection is on its way, and is the one to use
  taken,    // that rank is connected already
};

/// The acceptor's last word before TLS or plain writes.
struct Reply {
  std::uint32_t magic = kMagic;
  Verdict verdict{};
  std::array<std::byte, Key::kBytes> proof{};
};
static_assert(sizeof(Reply) == 40 && std::is_trivially_copyable_v<Reply>);

enum class Kind : std::uint8_t { write = 1, write_immediate = 2, goodbye = 3 };

/// Followed by `length` bytes that land at `offset` of the region.
struct MessageHead {
  std::uint32_t region = 0;  // of the receiver
  std::uint32_t immediate = 0;
  std::uint64_t nonce = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t magic = kMagic;
  Kind kind{};
  std::array<std::uint8_t, 3> reserved{};
};
static_assert(sizeof(MessageHead) == 40 && std::is_trivially_copyable_v<MessageHead>);

}  // namespace gdrx::tcp
