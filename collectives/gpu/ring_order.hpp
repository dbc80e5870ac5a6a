// SPDX-License-Identifier: Apache-2.0
// Which rank stands beside which in the ring. Pure; the same on every rank.
#pragma once

#include <cstdint>
#include <span>

#include "collectives/gpu/path.hpp"
#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

/// Ticket::bus of a GPU.
std::uint32_t bus_place(int domain, int bus, int device) noexcept;

/// By the GPUs' places on the bus, their ids, then by rank: however ranks were dealt out, those of
/// one GPU stand together, and so do those of one socket, whose buses are numbered together. A link
/// between two such groups then carries the ring once, not once a rank. `tickets`: of a host, by
/// rank, at least one. (topo's ring_order() knows more and needs the host's topology on every
/// rank.)
RingPlace ring_place(std::span<const Ticket> tickets, Rank self);

}  // namespace gdrx::gpu
