// SPDX-License-Identifier: Apache-2.0
// What the rank of one host does with a part of the vector on a rail, as a verified plan says:
// which messages, where they land, in which order the GPU adds. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/exec/rail_layout.hpp"
#include "gdrx/plan.hpp"

namespace gdrx::exec {

/// Sums and messages are over chunks of the part, which begin at multiples of RailLayout::kUnit;
/// the last ones may be short or empty, and what has no bytes is neither sent nor added.
struct RailPlan {
  /// All programs are looked at to make one.
  static constexpr int kMostHosts = 512;

  struct Chunks {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
  };
  struct Send {
    int host = 0;
    std::uint32_t number = 0;  // among this host's messages for that one
    Chunks chunks;
    std::optional<std::uint32_t> landing;  // there, in chunks; empty: in place
  };
  struct Arrival {
    int host = 0;
    std::uint32_t number = 0;  // among that host's messages for this one
    Chunks chunks;
  };
  /// Over the own operand, which is in place.
  struct Sum {
    Chunks chunks;
    std::vector<Arrival> arrivals;  // the other operands, in the order of the plan
    int self = 0;                   // how many of them come before the own one
    std::uint32_t landing = 0;      // of the first, in chunks; the others follow
    std::uint32_t level = 1;        // one more than that of any sum which it needs, on any rank
    bool finish = false;            // it completes the reduction
  };
  struct Step {
    enum class Kind : std::uint8_t { send, arrival, sum };
    Kind kind = Kind::send;
    std::uint32_t at = 0;  // in the list of its kind
  };

  std::uint32_t chunks = 1;    // of a part
  std::uint32_t landings = 0;  // chunks that land beside the part, on the rank with most of them
  std::uint32_t levels = 1;    // of any rank's sums
  std::uint32_t messages = 0;  // from one host to another, at most
  std::vector<Send> sends;
  std::vector<Arrival> arrivals;  // in place
  std::vector<Sum> sums;          // by level
  std::vector<std::vector<Step>> channels;

  /// Errc::unsupported: over kMostHosts, or a plan that needs what rails have not: one-shot keeps
  /// its input while it adds.
  static Result<RailPlan> create(plan::Algorithm algorithm, int hosts, int self);

  struct Share {
    Bytes begin = 0;
    Bytes bytes = 0;
  };
  /// Bytes of a full chunk.
  Bytes chunk(Bytes part) const noexcept {
    return RailLayout::round_up((part + chunks - 1) / chunks);
  }
  Share share(Bytes part, Chunks of) const noexcept {
    const Bytes begin = std::min(part, of.first * chunk(part));
    return {begin, std::min(part, (of.first + of.count) * chunk(part)) - begin};
  }
  /// Bytes of a part for which a layout has room.
  Bytes most_part(const RailLayout& layout) const noexcept;
  /// This rank's messages for a part.
  plan::Traffic traffic(Bytes part) const noexcept;
};

}  // namespace gdrx::exec
