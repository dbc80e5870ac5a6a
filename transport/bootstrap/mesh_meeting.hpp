// SPDX-License-Identifier: Apache-2.0
// Ranks that make a communicator from an id, or by MPI, and whose processes have a mesh already: it
// carries the new communicator, too. Each rank offers the meshes that it has; the first that all
// have is taken. What a rank says of itself here is proven by the mesh's own connections alone:
// nobody who is not at the other end of them can answer there.
#pragma once

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
  static MeshMeeting of(const ControlMesh::Options& options, std::string_view knows);

  /// What all ranks are to hear from this one.
  Result<Blob> offer();
  struct Joined {
    std::unique_ptr<ControlMesh> mesh;
    std::uint32_t facts = 0;  // that hold for all of its ranks
  };
  /// `offers`: by rank, this one is `self`. Nothing in them is trusted. Nothing: they have no mesh
  /// in common, which all of them find. Before anybody speaks in it each rank must have joined.
  Result<std::optional<Joined>> join(const std::vector<Blob>& offers, Rank self) const;

 private:
  struct Mesh {
    std::shared_ptr<MeshThread> thread;
    std::uint32_t facts = 0;
  };
  std::vector<Mesh> meshes_;
};

/// What a process keeps of a mesh that meetings may offer, while it lives.
struct SharedMesh {
  std::weak_ptr<MeshThread> thread;
  std::string knows;
  std::uint32_t facts = 0;
};
void share_in_process(SharedMesh mesh);

}  // namespace gdrx
