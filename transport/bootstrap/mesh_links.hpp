// SPDX-License-Identifier: Apache-2.0
// Which ranks a rank is linked to, and how the links come about.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gdrx/bootstrap.hpp"
#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/frame.hpp"
#include "transport/bootstrap/mesh_held.hpp"
#include "transport/bootstrap/mesh_outbox.hpp"
#include "transport/bootstrap/secure_socket.hpp"
#include "transport/bootstrap/shortage.hpp"

namespace gdrx {

struct MeshLink {
  MeshLink(std::int32_t to, SecureSocket through) : peer(to), socket(std::move(through)) {}
  std::int32_t peer = 0;
  SecureSocket socket;
  Socket process;  // of the peer: readable once it has ended; invalid where it cannot be watched
  FrameReader reader;
  HeldFrames held;
  Outbox unsent;      // what the socket had no room for
  bool shut = false;  // it takes nothing more
  int broken = 0;     // why, as errno: the kernel says it once, and then that the stream has ended
  Shortage shortage;  // of what the kernel needs to send it
  bool left = false;  // nothing more comes: an end, or garbage
  bool cut = false;   // the network is gone, though the data path still hears from the peer
  int missed = 0;     // own heartbeats since it last said something
};

struct MeshMember {
  std::int32_t pid = 0;
  std::string host;
};

struct MeshLinks {
  std::vector<MeshLink> links;      // ascending by peer
  std::vector<MeshMember> members;  // by rank
  Key key;                          // see ControlMesh::key()
  std::string description;
};

/// How a caller says who it is and whom it wants; nothing for what is no such thing.
std::string link_identity(std::int32_t from, std::int32_t to);
std::optional<std::pair<std::int32_t, std::int32_t>> read_link_identity(std::string_view identity);

/// "rank 5 (pid 1234 on host-a)".
std::string name_member(const std::vector<MeshMember>& members, std::int32_t rank);

/// By what a rank knows its neighbours, and they know it. `from` calls `to`.
struct MeshSelf {
  Key key;  // the mesh's
  std::int32_t rank = 0;
  std::int32_t size = 0;
  Result<Key> link_key(std::int32_t from, std::int32_t to) const;
};

/// Collective over the bootstrap. The lower rank connects; both sides show the link's key.
Result<MeshLinks> make_mesh_links(Bootstrap& bootstrap, const ControlMesh::Options& options,
                                  const Log& log, Deadline deadline);

}  // namespace gdrx
