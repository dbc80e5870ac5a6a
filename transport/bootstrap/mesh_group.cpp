// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_group.hpp"

#include <algorithm>

namespace gdrx {

MeshGroup::MeshGroup(MeshGroupId as, std::vector<std::int32_t> of_mesh,
                     std::vector<MeshMember> names, Rank rank, const MeshTree& tree,
                     std::vector<MeshLink>& links)
    : id(as), ranks(std::move(of_mesh)), members(std::move(names)), self(rank), order(tree.order) {
  for (MeshLink& link : links) {
    const auto at = std::find(ranks.begin(), ranks.end(), link.peer);
    if (at == ranks.end()) continue;
    GroupPeer& peer = peers.emplace_back();
    peer.rank = static_cast<std::int32_t>(at - ranks.begin());
    peer.link = &link;
  }
  for (GroupPeer& peer : peers) {
    if (tree.parent[static_cast<std::size_t>(peer.rank)] == index(self)) children.push_back(&peer);
    if (tree.parent[static_cast<std::size_t>(index(self))] == peer.rank) parent = &peer;
  }
  std::sort(children.begin(), children.end(),
            [](const GroupPeer* a, const GroupPeer* b) { return a->rank < b->rank; });
}

GroupPeer* MeshGroup::peer_by(const MeshLink& link) noexcept {
  const auto at = std::find_if(peers.begin(), peers.end(),
                               [&](const GroupPeer& peer) { return peer.link == &link; });
  return at == peers.end() ? nullptr : &*at;
}

bool MeshGroup::is_of_tree(const GroupPeer& peer) const noexcept {
  return &peer == parent || std::find(children.begin(), children.end(), &peer) != children.end();
}

bool MeshGroup::all_below_want_to_leave() const noexcept {
  return std::all_of(children.begin(), children.end(),
                     [](const GroupPeer* peer) { return peer->fenced; });
}

bool MeshGroup::anyone_left() const noexcept {
  return std::any_of(peers.begin(), peers.end(), [](const GroupPeer& peer) { return peer.left; });
}

bool MeshGroup::anyone_gave_up() const noexcept {
  return std::any_of(peers.begin(), peers.end(),
                     [](const GroupPeer& peer) { return peer.gave_up; });
}

}  // namespace gdrx
