// SPDX-License-Identifier: Apache-2.0
// How a message is cut over rails. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/verbs/wire.hpp"

namespace gdrx::verbs {

/// Cuts fall on multiples of this from the payload's start: a PCIe write of a full line each.
inline constexpr Bytes kStripeAlign = 128;
/// A stripe costs a work request and a completion on both sides, which shorter ones do not earn.
inline constexpr Bytes kLeastStripe = 16 * 1024;

struct RailLoad {
  std::uint32_t weight = 0;  // speed; 0: takes nothing
  Bytes outstanding = 0;     // posted and not acknowledged
};

struct Stripe {
  std::uint8_t rail = 0;  // index of the loads
  Bytes offset = 0;
  Bytes bytes = 0;
};

struct Stripes {
  std::array<Stripe, kMaxStripes> item{};
  std::size_t count = 0;
};

/// Shares such that all rails, with what is outstanding on each, end together: share + outstanding
/// is proportional to the weight; a rail that is too far behind takes nothing. Nothing at all: no
/// rail has weight.
Stripes stripe(Bytes payload, std::span<const RailLoad> rails) noexcept;

}  // namespace gdrx::verbs
