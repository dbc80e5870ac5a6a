// SPDX-License-Identifier: Apache-2.0
// What goes over control connections: small frames with a magic, a version and a checked length.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "gdrx/result.hpp"

namespace gdrx {

enum class FrameKind : std::uint16_t {
  hello = 1,
  accepted,
  refused,  // with the reason; the connection ends
  data,
  notice,
  goodbye,  // with a byte: without having met the others who leave
  query,    // a rank that waits asks the root whom for
  missing,  // the root's answer to it
  broken,   // the round cannot be completed; with the reason
  fence,    // a round of the last barrier, when ranks leave together; with its number
  heartbeat,
  place,  // where ranks meet anew; with its number
};

struct FrameHeader {
  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  FrameKind kind{};
  std::uint32_t length = 0;  // of what follows
};
static_assert(sizeof(FrameHeader) == 12 && std::is_trivially_copyable_v<FrameHeader>);

inline constexpr std::uint32_t kMaxFrame = 64u << 20;
inline constexpr std::int32_t kMostRanks = 1 << 20;

struct Frame {
  FrameKind kind{};
  Blob payload;
};

FrameHeader header_of(FrameKind kind, std::size_t length) noexcept;
Blob encode_frame(FrameKind kind, std::span<const std::byte> payload);

/// Puts frames together from a stream's pieces. Refuses garbage at its first header.
class FrameReader {
 public:
  explicit FrameReader(std::uint32_t limit = kMaxFrame) : limit_(limit) {}
  /// For frames from the next one on.
  void set_limit(std::uint32_t limit) noexcept { limit_ = limit; }
  void feed(std::span<const std::byte> bytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  /// The next whole frame, nothing if it has not all come, Errc::protocol for what is not ours.
  Result<std::optional<Frame>> next();

 private:
  std::uint32_t limit_;
  Blob buffer_;
};

/// The first frame on each connection, both ways.
struct HelloFrame {
  std::uint64_t nonce[2] = {};  // who knows it belongs here
  std::int32_t rank = 0;
  std::int32_t size = 0;
};
static_assert(sizeof(HelloFrame) == 24 && std::is_trivially_copyable_v<HelloFrame>);

/// Length and range are checked here, the nonce by the caller.
Result<HelloFrame> decode_hello_frame(std::span<const std::byte> payload);

/// Many blobs in one: each with its length before it.
void append_blob(Blob& out, std::span<const std::byte> blob);
Result<std::vector<Blob>> split_blobs(std::span<const std::byte> bytes, std::size_t expected);

}  // namespace gdrx
