// SPDX-License-Identifier: Apache-2.0
// Where a rank stands in the ring and in the trees: read off the plans that verify() proves, so
// that a kernel talks to whom its plan says. Pure; the same on every rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/gpu/path.hpp"
#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

/// Ticket::bus of a GPU.
std::uint32_t bus_place(int domain, int bus, int device) noexcept;

/// The ranks by their GPUs' places on the bus, their ids, then by rank: who stands at which
/// position of a plan. However ranks were dealt out, those of one GPU stand together, and so do
/// those of one socket, whose buses are numbered together. A link between two such groups then
/// carries a ring once, not once a rank. `tickets`: of a host, by rank, at least one. (topo's
/// ring_order() knows more and needs the host's topology on every rank.)
std::vector<std::int32_t> positions_of(std::span<const Ticket> tickets);

/// Of plan::Algorithm::ring. `ranks`: by position.
Result<RingPlace> ring_place(std::span<const std::int32_t> ranks, Rank self);
/// Of one of the two trees of plan::Algorithm::tree.
Result<TreePlace> tree_place(std::span<const std::int32_t> ranks, Rank self, int tree);

}  // namespace gdrx::gpu
