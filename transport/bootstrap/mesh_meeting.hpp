// SPDX-License-Identifier: Apache-2.0
// Ranks that make a communicator from an id, or by MPI, and whose processes have a mesh already: it
// carries the new communicator, too. Each rank offers the meshes that it has; the first that all
// have is taken. What a rank says of itself here is proven by the mesh's own connections alone:
// nobody who is not at the other end of them can answer there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/bootstrap/mesh_thread.hpp"

namespace gdrx {

/// Of one rank. Keeps the meshes that it offers alive.
class MeshMeeting {
 public:
  /// Those of this process whose options are the same. `knows` is as in ControlMesh::share().
  static MeshMeeting of(const ControlMesh::Options& options, std::string_view knows, int ranks);

  /// What may hold for all of the ranks.
  std::uint32_t likely_facts() const;
  /// What all ranks are to hear from this one; `more`: of it that is none of the meshes'.
  Result<Blob> offer(std::span<const std::byte> more = {});
  /// A mesh that all ranks have in common.
  struct Common {
    std::array<std::byte, 16> mesh{};
    std::vector<std::int32_t> ranks;  // of the mesh, by rank of the meeting
    std::uint32_t facts = ~0U;        // that hold for all of its ranks
  };
  /// `offers`: by rank. Nothing in them is trusted. All ranks choose the same, or nothing. After
  /// offer(), and once, it needs no memory: the others do what they have chosen.
  std::optional<Common> choose(const std::vector<Blob>& offers);
  struct Joined {
    std::unique_ptr<ControlMesh> mesh;
    std::vector<Blob> more;  // by rank
  };
  /// This rank is `self`. What others say in it that have joined before is heard. They hear of a
  /// failure.
  Result<Joined> join(const Common& common, const std::vector<Blob>& offers, Rank self);
  /// Where the offers are not known: those who join see the connections end. It needs no memory.
  void hang_up() const noexcept;

 private:
  struct Mesh {
    std::shared_ptr<MeshThread> thread;
    std::uint32_t facts = 0;
  };
  /// What all say makes one of it that no other has.
  Result<Key> key_of(const Mesh& mesh, const std::vector<Blob>& offers);
  Result<Joined> try_to_join(const Mesh& mesh, const Common& common,
                             const std::vector<Blob>& offers, Rank self);
  void refuse(const Mesh& mesh, std::span<const std::int32_t> ranks,
              const std::vector<Blob>& offers, Rank self, const Error& why) noexcept;
  const Mesh* find(const std::array<std::byte, 16>& id) const;
  std::vector<Mesh> meshes_;
  std::size_t ranks_ = 0;
  KeyContext said_;  // by all; this and what is below has the room before they say it
  std::vector<std::int32_t> room_for_ranks_;
  std::vector<std::int32_t> room_for_tree_;
};

/// What a process keeps of a mesh that meetings may offer, while it lives.
struct SharedMesh {
  std::weak_ptr<MeshThread> thread;
  std::string knows;
  std::uint32_t facts = 0;
};
void share_in_process(SharedMesh mesh);

}  // namespace gdrx
