// SPDX-License-Identifier: Apache-2.0
// A frame of one of the communicators that share a link: whose it is stands before the rest.
#pragma once

#include <cstring>

#include "transport/bootstrap/control_mesh.hpp"
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

/// Nothing: it is too short to have one. `payload` becomes what is behind it.
inline std::optional<MeshGroupId> take_group_id(std::span<const std::byte>& payload) {
  MeshGroupId id{};
  if (payload.size() < sizeof id) return {};
  std::memcpy(&id, payload.data(), sizeof id);
  payload = payload.subspan(sizeof id);
  return id;
}

}  // namespace gdrx
