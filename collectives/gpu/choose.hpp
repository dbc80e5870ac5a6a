// SPDX-License-Identifier: Apache-2.0
// Which kernel a call takes, and over how many blocks. Pure; the same on every rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/gpu/path.hpp"
#include "collectives/kernels/shape.hpp"
#include "collectives/tune/tune_table.hpp"
#include "gdrx/plan.hpp"

namespace gdrx::gpu {

inline constexpr std::size_t kAllReduceKernels = 5;
/// Of an all_reduce kernel among them: one_shot, two_shot, ring, direct, tree.
std::size_t place_of(Kernel kernel) noexcept;

/// The bits of a result do not depend on the kernel for vectors up to this, unless GDRX_ALGO names
/// one that adds in another order than that of the ranks.
inline constexpr std::uint64_t kSameBitsBytes = 4 << 20;

/// The end of an arena, which NICs write between hosts: kernels of Host::rail leave it alone.
inline constexpr std::uint64_t kRailBytes = 5 * (1 << 20) + 3 * (1 << 18);

struct Host {
  int ranks = 1;
  int blocks = 131;           // multiprocessors that a call of one rank may keep busy
  bool reproducible = false;  // the same bits whatever the size: kernels that reduce in rank order
  /// Times by place_of(), measured here with so many ranks. A call that may take a kernel which has
  /// none here is decided by the model alone.
  std::array<std::vector<tune::Point>, kAllReduceKernels> measured{};
  bool rail = false;  // kernels of blocks leave kRailBytes of the arena to NICs
};

/// Multiprocessors of a call: the user's budget, and no more than run at once beside those of other
/// ranks on the same GPU, but for one. Two communicators of the same GPUs can then never keep
/// each other out: blocks of the same number depend on each other alone, and of each communicator
/// some block always has room.
int co_resident_blocks(std::span<const Ticket> tickets, int budget) noexcept;

struct Prediction {
  Shape shape;
  double us = 0;
  bool measured = false;  // by Host::measured; then all of a call's are
};

/// Every kernel that can run the call, the best first. Never empty for 1 to kMaxRanks ranks.
/// `direct`: the buffers are registered on every rank.
std::vector<Prediction> candidates(const Host& host, std::uint64_t bytes, bool direct = false);
/// The best, without the list.
Prediction best(const Host& host, std::uint64_t bytes, bool direct = false);
inline Shape choose(const Host& host, std::uint64_t bytes) { return best(host, bytes).shape; }
/// As best(), of one kernel; empty if that kernel cannot run the call, or must not.
std::optional<Prediction> prediction_of(Kernel kernel, const Host& host, std::uint64_t bytes);
std::optional<Shape> shape_of(Kernel kernel, const Host& host, std::uint64_t bytes);

/// Of kernels that only move, by the model: the GPU with the most to send, or to get, has so many
/// bytes.
double move_us(const Host& host, std::uint64_t bytes) noexcept;

/// The kernel of an allReduce that is asked for by the name of an algorithm; empty: none has it.
std::optional<Kernel> kernel_of(plan::Algorithm algorithm) noexcept;
/// What `algorithm`, if any was asked for, comes to; empty if its kernel cannot carry this size.
std::optional<Prediction> asked_for(std::optional<plan::Algorithm> algorithm, const Host& host,
                                    std::uint64_t bytes);

/// Of reduce_scatter and all_gather, whose blocks have `block` bytes. Fits for 1 to kMaxRanks
/// ranks.
Shape shape_of_blocks(Kernel kernel, const Host& host, std::uint64_t block);

std::string_view to_string(Kernel kernel) noexcept;

}  // namespace gdrx::gpu
