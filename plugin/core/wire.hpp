// SPDX-License-Identifier: Apache-2.0
// What two plugins say to each other: the handle that NCCL carries, the side channel's greeting,
// the clear-to-send ring that a receiver fills in the sender's memory and the head of every chunk.
// Nothing of it is trusted by who receives it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "plugin/abi/types.hpp"
#include "transport/bootstrap/secret.hpp"
#include "transport/bootstrap/socket.hpp"

namespace gdrx::net {

inline constexpr std::uint32_t kMagic = 0x6e786467;  // "gdxn"
inline constexpr std::uint32_t kWireVersion = 5;
inline constexpr std::size_t kMaxGroup = 8;            // receives in one irecv()
inline constexpr std::size_t kClearToSendGroups = 64;  // irecv() under way; NCCL asks for 32
inline constexpr std::size_t kMaxSends = nccl::kMaxRequests * kMaxGroup;

/// The first bytes of NCCL's handle: where a listener listens, and what the side channel's key is
/// made of. NCCL carries it in clear text: GDRX_SECRET_FILE is mixed in.
struct Handle {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kWireVersion;
  SocketAddress address;
  std::uint32_t reserved = 0;
  std::array<std::byte, Key::kBytes> key{};
};
static_assert(sizeof(Handle) == 64 && std::is_trivially_copyable_v<Handle>);

/// NCCL hands connect() the same buffer again: the side that connects keeps the number of its
/// attempt behind the part that went over the wire. Zero: not begun.
inline constexpr std::size_t kAttemptOffset = 96;
static_assert(sizeof(Handle) <= kAttemptOffset);
static_assert(kAttemptOffset + sizeof(std::uint64_t) <= nccl::kHandleMaxSize);

/// What a side channel to the listener of that handle goes by.
Result<Key> side_channel_key(const Handle& handle, const Config& config);
/// What the connecting side says that it wants.
inline constexpr std::string_view kSideChannel = "gdrx-net-5";

/// Who a device context is to its peers.
struct DeviceContextId {
  std::uint64_t nonce = 0;
  std::int32_t rank = 0;
  std::uint32_t reserved = 0;
};

/// From the sender; the device context's address and the clear-to-send ring's key follow.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kWireVersion;
  DeviceContextId device_context;
  std::array<char, 8> fabric{};
  std::uint32_t comm = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(Hello) == 40 && std::is_trivially_copyable_v<Hello>);

/// The receiver's answer, or a frame that says why there is none: empty if its device context knows
/// a third by this one's rank. The device context's address and the receive ring's key follow.
struct Welcome {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kWireVersion;
  DeviceContextId device_context;
  std::uint32_t comm = 0;
  std::uint32_t chunks = 0;
  std::uint64_t chunk_bytes = 0;
  std::array<std::uint64_t, 2> gpu{};  // the socket over which GPU memory is handed over; or zeros
  std::uint32_t filled = 0;  // the immediate that says: the next item, to its end, is in its place
  std::uint32_t eager = 0;   // 1: small messages may come before their receive is posted
};
static_assert(sizeof(Welcome) == 64 && std::is_trivially_copyable_v<Welcome>);

/// Over the side channel, from the receiver: a region that writes may go straight into, and its
/// key; or, with no bytes and an empty key, that it is no longer one.
struct Given {
  std::uint32_t magic = kMagic;
  std::uint32_t id = 0;  // 1, 2, ...; never used again
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Given) == 16 && std::is_trivially_copyable_v<Given>);

/// In Item::memory: no processor reaches it, so that nothing for it may go through the receive
/// ring.
inline constexpr std::uint32_t kOnlyDirect = 1U << 31;

/// One receive of a group.
struct Item {
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  // in that memory
  std::int32_t tag = 0;
  std::uint32_t memory = 0;  // handed over under this number; 0: through the receive ring alone
};

/// One irecv(), clear to send.
struct Group {
  std::uint64_t sequence = 0;  // 1, 2, ...: whether it is there
  std::uint32_t count = 0;
  std::uint32_t reserved = 0;
  std::array<Item, kMaxGroup> items{};
};
static_assert(sizeof(Group) == 208 && std::is_trivially_copyable_v<Group>);

/// In the sender's memory, written by the receiver alone.
struct ClearToSendRing {
  std::uint64_t consumed = 0;  // chunks that the receiver has emptied
  std::uint64_t ready = 0;     // 1: this way of the connection works
  std::array<std::uint64_t, 6> reserved{};
  std::array<Group, kClearToSendGroups> groups{};
};
static_assert(sizeof(ClearToSendRing) == 64 + kClearToSendGroups * sizeof(Group));
static_assert(std::is_trivially_copyable_v<ClearToSendRing>);

/// Eager messages: most bytes of one, most of a connection that no receive is known for.
inline constexpr std::size_t kEagerBytes = 8192;
inline constexpr std::size_t kMostEager = 16;

/// In front of a chunk's bytes in the receive ring, which are whole lines (kLine) but for a
/// message's end. Of group 0: a whole eager message, `item` its tag.
struct ChunkHead {
  std::uint64_t sequence = 0;  // 1, 2, ...: whether it is there
  std::uint64_t group = 0;
  std::uint64_t offset = 0;  // in the message
  std::uint64_t total = 0;   // of the message
  std::uint32_t bytes = 0;
  std::uint32_t item = 0;
  std::uint32_t direct = 0;  // 1: all of the message is in its place already
  std::uint32_t reserved = 0;
};
inline constexpr std::size_t kChunkHead = 64;  // keeps the bytes aligned
static_assert(sizeof(ChunkHead) == 48 && std::is_trivially_copyable_v<ChunkHead>);

}  // namespace gdrx::net
