// SPDX-License-Identifier: Apache-2.0
// What a communicator has of a mesh that it shares with others: its ranks, and what they said.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "transport/bootstrap/control_mesh.hpp"
#include "transport/bootstrap/mesh_links.hpp"
#include "transport/bootstrap/mesh_tree.hpp"

namespace gdrx {

/// A rank of the communicator that this one has a link to.
struct GroupPeer {
  std::int32_t rank = 0;  // of the communicator
  MeshLink* link = nullptr;
  bool left = false;         // the communicator, by a goodbye, or the mesh
  bool gave_up = false;      // its goodbye says that it has not met the others
  bool fenced = false;       // it and all below it, or of the parent: all ranks want to leave
  Blob partial;              // of what it tells to be gathered
  std::optional<Blob> told;  // all of that, and nobody has taken it
};

/// Guarded by the lock of the wire, up to `calling`.
struct MeshGroup {
  enum class Leave : std::uint8_t { waiting, together, alone, told };

  /// `ranks`: of the mesh, by rank of the communicator. `links` outlives it.
  MeshGroup(MeshGroupId as, std::vector<std::int32_t> of_mesh, std::vector<MeshMember> names,
            Rank rank, const MeshTree& tree, std::vector<MeshLink>& links);
  MeshGroup(const MeshGroup&) = delete;
  MeshGroup& operator=(const MeshGroup&) = delete;

  std::int32_t size() const noexcept { return static_cast<std::int32_t>(ranks.size()); }
  std::string name_of(const GroupPeer& peer) const { return name_member(members, peer.rank); }
  /// Null: that is no link of the communicator's.
  GroupPeer* peer_by(const MeshLink& link) noexcept;
  bool is_of_tree(const GroupPeer& peer) const noexcept;
  bool all_below_want_to_leave() const noexcept;
  bool anyone_left() const noexcept;
  bool anyone_gave_up() const noexcept;

  const MeshGroupId id;
  const std::vector<std::int32_t> ranks;
  const std::vector<MeshMember> members;
  const Rank self;
  const std::vector<std::int32_t> order;  // see MeshTree
  std::vector<GroupPeer> peers;
  GroupPeer* parent = nullptr;
  std::vector<GroupPeer*> children;

  bool started = false;                 // nothing is gathered any more
  std::optional<FailureNotice> notice;  // the first, here or elsewhere
  bool news = false;                    // the handler has not been told of it
  std::function<bool(Rank)> data_path_hears;
  std::uint32_t place_number = 0;
  Blob place;
  bool leaving = false;
  bool said_fence = false;  // to the parent
  bool said_goodbye = false;
  Leave leave = Leave::waiting;

  std::recursive_mutex calling;  // a handler, in which another may be called
  ControlMesh::Handlers handlers;

  std::atomic<bool> woken{true};  // wants its turn at once
  Instant due{};                  // of its next turn; the mesh's thread's own
};

}  // namespace gdrx
