// SPDX-License-Identifier: Apache-2.0
// A communicator's ranks as a tree over the links that they have to each other: what they gather
// goes up it and down again, and so does the word that all are there. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gdrx {

/// (rank +- 2^k) mod n, ascending, without `rank` itself: the ranks of a mesh that it is linked to.
std::vector<std::int32_t> mesh_neighbours(std::int32_t rank, std::int32_t n);

struct MeshTree {
  std::vector<std::int32_t> parent;  // by rank; rank 0 is the root, and has -1
  std::vector<std::int32_t> order;   // of ranks: each has all that are below it behind it

  std::vector<std::int32_t> children_of(std::int32_t rank) const;
};

/// `ranks`: of the mesh of `n`, by rank of the communicator. Nothing: they are in parts between
/// which there is no link.
std::optional<MeshTree> mesh_tree(std::span<const std::int32_t> ranks, std::int32_t n);

/// Whether they are in one part, and the others still are when any one of them is gone. Needs no
/// memory but `n` places in `room`.
bool mesh_outlives_any(std::span<const std::int32_t> ranks, std::int32_t n,
                       std::vector<std::int32_t>& room);
inline bool mesh_outlives_any(std::span<const std::int32_t> ranks, std::int32_t n) {
  std::vector<std::int32_t> room;
  return mesh_outlives_any(ranks, n, room);
}

}  // namespace gdrx
