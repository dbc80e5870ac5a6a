// SPDX-License-Identifier: Apache-2.0
// A frame of one of the communicators that share a link: whose it is stands before the rest.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/failure_notice.hpp"
#include "transport/bootstrap/frame.hpp"

namespace gdrx {

/// Longest piece of what is gathered; a longer one takes several frames, so that nobody has to
/// make room for what an unknown communicator says.
inline constexpr std::size_t kMostMeshPiece = 16 << 10;
/// Longest payload of a frame.
inline constexpr std::uint32_t kMostMeshFrame = kMostMeshPiece + sizeof(MeshGroupId) + 1;

inline Blob encode_mesh_frame(FrameKind kind, MeshGroupId group,
                              std::span<const std::byte> payload) {
  const auto id = std::as_bytes(std::span(&group, 1));
  Blob whole(id.begin(), id.end());
  whole.insert(whole.end(), payload.begin(), payload.end());
  return encode_frame(kind, whole);
}

/// What is said of an end: a fence, a goodbye or a notice. It needs no memory.
class MeshWord {
 public:
  static constexpr std::size_t kMost = sizeof(FrameHeader) + sizeof(MeshGroupId) + kMostNotice;

  MeshWord(FrameKind kind, MeshGroupId group, std::span<const std::byte> payload) noexcept {
    const FrameHeader header = header_of(kind, sizeof group + payload.size());
    append(std::as_bytes(std::span(&header, 1)));
    append(std::as_bytes(std::span(&group, 1)));
    append(payload);
  }
  static MeshWord fence(MeshGroupId group) noexcept { return {FrameKind::fence, group, {}}; }
  static MeshWord goodbye(MeshGroupId group, bool gave_up) noexcept {
    const std::byte mark{};
    return {FrameKind::goodbye, group, std::span(&mark, gave_up ? 1 : 0)};
  }
  static MeshWord notice(MeshGroupId group, const FailureNotice& notice) noexcept {
    const EncodedNotice encoded(notice);
    return {FrameKind::notice, group, encoded.bytes()};
  }
  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(size_); }

 private:
  void append(std::span<const std::byte> more) noexcept {
    std::copy(more.begin(), more.end(), bytes_.begin() + size_);
    size_ += more.size();
  }
  std::array<std::byte, kMost> bytes_;
  std::size_t size_ = 0;
};

/// Of each communicator, by each link: a fence, a goodbye and a notice.
inline constexpr std::size_t kLastWords =
    3 * (sizeof(FrameHeader) + sizeof(MeshGroupId)) + 1 + kMostNotice;

/// Nothing: it is too short to have one. `payload` becomes what is behind it.
inline std::optional<MeshGroupId> take_group_id(std::span<const std::byte>& payload) {
  MeshGroupId id{};
  if (payload.size() < sizeof id) return {};
  std::memcpy(&id, payload.data(), sizeof id);
  payload = payload.subspan(sizeof id);
  return id;
}

}  // namespace gdrx
