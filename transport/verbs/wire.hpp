// SPDX-License-Identifier: Apache-2.0
// What gdrx's verbs fabric says on the wire: the immediate, the head of a send, a region's key, a
// device's address and the control datagram. Nothing of it is trusted by who receives it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "gdrx/result.hpp"
#include "gdrx/transport.hpp"

namespace gdrx::verbs {

inline constexpr std::uint32_t kMagic = 0x67647632;  // "gdv2"
inline constexpr std::uint8_t kWireVersion = 5;
inline constexpr std::size_t kMaxRails = 8;
inline constexpr std::size_t kMaxQps = 8;         // a rail
inline constexpr std::size_t kMaxStripes = 8;     // of a message
inline constexpr std::uint32_t kWindow = 256;     // messages between two ranks not yet delivered
inline constexpr std::size_t kEagerBytes = 1024;  // header and payload that travel in one send

/// The 32 bits of a write with immediate. A message's sequence number is sent modulo 2^14, which is
/// far more than the window.
enum class SignalKind : std::uint8_t { stripe, whole, whole_immediate };
struct Signal {
  SignalKind kind{};
  std::uint64_t sequence = 0;
  std::uint16_t low = 0;  // stripe: its index; whole_immediate: the caller's immediate
};
inline constexpr std::uint32_t kSequenceBits = 14;
static_assert(kWindow * 4 <= 1U << kSequenceBits);

constexpr std::uint32_t encode(const Signal& signal) noexcept {
  constexpr std::uint64_t kMask = (1U << kSequenceBits) - 1;
  return static_cast<std::uint32_t>(signal.kind) << 30 |
         static_cast<std::uint32_t>(signal.sequence & kMask) << 16 | signal.low;
}
/// `next` is the lowest sequence number that is not delivered. Nothing: no such kind.
constexpr std::optional<Signal> decode_signal(std::uint32_t word, std::uint64_t next) noexcept {
  constexpr std::uint64_t kSpan = 1U << kSequenceBits;
  if (word >> 30 > 2) return std::nullopt;
  Signal signal;
  signal.kind = static_cast<SignalKind>(word >> 30);
  signal.low = static_cast<std::uint16_t>(word);
  signal.sequence = next + ((word >> 16) - next) % kSpan;
  return signal;
}

/// In front of what a send carries: a whole small message, or the envelope of a striped one.
enum class HeadKind : std::uint8_t { eager = 1, envelope = 2 };
struct Head {
  std::uint32_t magic = kMagic;
  HeadKind kind{};
  std::uint8_t stripes = 0;  // envelope: that carry the payload
  std::uint8_t has_immediate = 0;
  std::uint8_t reserved = 0;
  std::uint64_t sequence = 0;
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;   // of that region: a stale or guessed key is refused
  std::uint64_t offset = 0;  // where what follows lands
  std::uint32_t immediate = 0;
  std::uint32_t bytes = 0;    // that follow
  std::uint64_t payload = 0;  // envelope: bytes of its stripes, which land behind those
};
static_assert(sizeof(Head) == 48 && std::is_trivially_copyable_v<Head>);
inline constexpr std::size_t kSendBytes = sizeof(Head) + kEagerBytes;

/// One port of a device, as its peers need it.
struct RailAddress {
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t control_qp = 0;
  std::uint32_t qkey = 0;
  std::uint32_t speed = 0;  // Mb/s
  std::uint16_t lid = 0;
  std::uint8_t ethernet = 0;
  std::uint8_t mtu = 0;          // ibv_mtu
  std::uint8_t subnet_bits = 0;  // of the GID, that name its subnet; 0: not known
  std::uint8_t revision = 0;     // the port's GID or LID has changed so often
  std::array<char, 22> name{};   // "mlx5_0:1"
};
static_assert(sizeof(RailAddress) == 56 && std::is_trivially_copyable_v<RailAddress>);

struct DeviceAddress {
  std::uint32_t magic = kMagic;
  std::uint8_t version = kWireVersion;
  std::uint8_t rails = 0;
  std::uint8_t qps = 0;
  std::uint8_t reserved = 0;
  std::uint64_t nonce = 0;  // names this device; a datagram that lacks it is not from a member
  std::array<RailAddress, kMaxRails> rail{};
};
static_assert(sizeof(DeviceAddress) == 464 && std::is_trivially_copyable_v<DeviceAddress>);

inline constexpr std::uint8_t kNoProcessor = 1;  // only NICs write there: no eager messages
inline constexpr std::uint8_t kCopied = 2;  // the owner has to know what landed: envelopes always
struct RegionKey {
  std::uint32_t magic = kMagic;
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;
  std::uint8_t rails = 0;
  std::uint8_t flags = 0;
  std::uint16_t far = 0;  // bit a rail: others of its owner are nearer to the memory
  std::uint64_t base = 0;
  std::uint64_t length = 0;
  std::array<std::uint32_t, kMaxRails> rkey{};
};
static_assert(sizeof(RegionKey) == 64 && std::is_trivially_copyable_v<RegionKey>);

/// What one end tells the other by writing it into its memory.
struct CreditWord {
  std::uint64_t receives = 0;      // posted on the QP since it was made
  std::uint64_t delivered = 0;     // messages of the two ranks
  std::uint64_t acknowledged = 0;  // sent: all messages before have been, and land no more
};
inline constexpr std::size_t kGrantBytes = offsetof(CreditWord, acknowledged);

enum class ControlKind : std::uint8_t { hello = 1, quiesced = 2, ping = 3, pong = 4 };
inline constexpr std::uint8_t kReady = 1;   // hello: your QPs are known and mine can receive
inline constexpr std::uint8_t kUp = 2;      // hello: I know that you are ready
inline constexpr std::uint8_t kGuard = 8;   // hello: my NIC may deliver again what it delivered
inline constexpr std::uint8_t kEce = 4;     // hello: it carries what the QPs' provider offers
inline constexpr std::uint8_t kAnswer = 1;  // quiesced: not to be answered

/// A datagram between two devices about one of their port pairs.
struct Control {
  std::uint32_t magic = kMagic;
  std::uint8_t version = kWireVersion;
  ControlKind kind{};
  std::uint8_t pair = 0;
  std::uint8_t flags = 0;
  std::int32_t rank = 0;  // sender's
  std::uint32_t epoch = 0;
  std::uint64_t from = 0;  // nonces of the two devices
  std::uint64_t to = 0;
  RailAddress rail{};  // sender's, of this port pair
  std::uint8_t rails = 0;
  std::uint8_t qps = 0;
  std::uint16_t receives = 0;    // hello: posted on each QP
  std::uint32_t own_rails = 0;   // 4 bits a port pair: which of the sender's rails it joins
  std::uint32_t peer_rails = 0;  // and which of the receiver's
  std::uint32_t credit_rkey = 0;
  std::uint64_t credit_address = 0;  // hello: CreditWord[qps]
  std::uint64_t delivered = 0;
  std::uint32_t psn = 0;
  std::uint32_t ece_vendor = 0;  // hello, and so the next two
  std::uint32_t ece_options = 0;
  std::uint32_t ece_mask = 0;
  std::array<std::uint32_t, kMaxQps> qp{};        // hello
  std::array<std::uint32_t, kMaxQps> received{};  // quiesced: receives that completed on each QP
};
static_assert(sizeof(Control) == 200 && std::is_trivially_copyable_v<Control>);
inline constexpr std::size_t kGrhBytes = 40;  // in front of every datagram received

/// Errc::protocol says what is wrong with it.
template <class T>
Result<T> decode(std::span<const std::byte> bytes) {
  T value;
  if (bytes.size() != sizeof value) return fail(Errc::protocol, "it has another length");
  std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  if (value.magic != kMagic) return fail(Errc::protocol, "it is not gdrx's");
  return value;
}
Result<DeviceAddress> decode_address(std::span<const std::byte> bytes);
Result<Control> decode_control(std::span<const std::byte> bytes);

}  // namespace gdrx::verbs
