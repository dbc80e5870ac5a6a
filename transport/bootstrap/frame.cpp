// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/frame.hpp"

#include <fmt/format.h>

#include <cstring>

namespace gdrx {
namespace {

constexpr std::uint32_t kMagic = 0x78726467;  // "gdrx"
constexpr std::uint16_t kVersion = 3;

}  // namespace

FrameHeader header_of(FrameKind kind, std::size_t length) noexcept {
  return {kMagic, kVersion, kind, static_cast<std::uint32_t>(length)};
}

Blob encode_frame(FrameKind kind, std::span<const std::byte> payload) {
  const FrameHeader header = header_of(kind, payload.size());
  Blob out(sizeof header + payload.size());
  std::memcpy(out.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(out.data() + sizeof header, payload.data(), payload.size());
  return out;
}

Result<std::optional<Frame>> FrameReader::next() {
  FrameHeader header;
  if (buffer_.size() < sizeof header) return std::optional<Frame>();
  std::memcpy(&header, buffer_.data(), sizeof header);
  if (header.magic != kMagic) return fail(Errc::protocol, "bytes that are not gdrx's");
  if (header.version != kVersion) {
    return fail(Errc::protocol,
                fmt::format("version {} of the control protocol where {} is spoken: install the "
                            "same gdrx everywhere",
                            header.version, kVersion));
  }
  if (header.length > limit_) {
    return fail(Errc::protocol, fmt::format("a frame of {} bytes", header.length));
  }
  const std::size_t whole = sizeof header + header.length;
  if (buffer_.size() < whole) return std::optional<Frame>();
  const auto begin = buffer_.begin() + sizeof header;
  const auto end = buffer_.begin() + static_cast<std::ptrdiff_t>(whole);
  Frame frame{header.kind, Blob(begin, end)};
  buffer_.erase(buffer_.begin(), end);
  return std::optional<Frame>(std::move(frame));
}

Result<HelloFrame> decode_hello_frame(std::span<const std::byte> payload) {
  HelloFrame hello;
  if (payload.size() != sizeof hello) return fail(Errc::protocol, "a hello of a wrong length");
  std::memcpy(&hello, payload.data(), sizeof hello);
  if (hello.size < 1 || hello.size > kMostRanks || hello.rank < 0 || hello.rank >= hello.size) {
    return fail(Errc::protocol, fmt::format("rank {} of {} says hello", hello.rank, hello.size));
  }
  return hello;
}

void append_blob(Blob& out, std::span<const std::byte> blob) {
  const auto length = static_cast<std::uint32_t>(blob.size());
  const auto head = std::as_bytes(std::span(&length, 1));
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), blob.begin(), blob.end());
}

Result<std::vector<Blob>> split_blobs(std::span<const std::byte> bytes, std::size_t expected) {
  std::vector<Blob> blobs;
  while (!bytes.empty() && blobs.size() < expected) {
    std::uint32_t length = 0;
    if (bytes.size() < sizeof length) break;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes = bytes.subspan(sizeof length);
    if (bytes.size() < length) break;
    blobs.emplace_back(bytes.begin(), bytes.begin() + length);
    bytes = bytes.subspan(length);
  }
  if (blobs.size() != expected || !bytes.empty()) {
    return fail(Errc::protocol, "a list of blobs that does not add up");
  }
  return blobs;
}

}  // namespace gdrx
