// SPDX-License-Identifier: Apache-2.0
// How long a plan takes under the alpha-beta-gamma model (Hockney 1994; Thakur, Rabenseifner, Gropp
// 2005): a prediction to compare algorithms by, never a measurement. Pure.
#pragma once

#include <vector>

#include "gdrx/plan.hpp"

namespace gdrx::plan {

/// What messages share.
enum class Links : std::uint8_t {
  port,  // a rank sends one message and receives one message at a time, both at once (full duplex)
  pair,  // every ordered pair of ranks has a link of its own
};

/// Microseconds, and microseconds per byte.
struct Costs {
  double alpha_us = 0;     // latency of a message; later messages may leave meanwhile
  double overhead_us = 0;  // per message, during which the link is busy
  double beta_us = 0;      // a byte on a link: 1e-3 / (GB/s)
  double gamma_us = 0;     // a byte combined
  double copy_us = 0;      // a byte copied by `copy` or `recv_copy`
  Links links = Links::port;
};

/// One op on the critical path. A send ends when its message has been delivered.
struct Moment {
  Rank rank{};
  std::uint32_t channel = 0;
  std::uint32_t op = 0;
  double begin_us = 0;
  double end_us = 0;
};

struct Prediction {
  double time_us = 0;                 // of the slowest rank
  std::vector<double> finish_us;      // each rank
  std::vector<Moment> critical_path;  // in order of time: why it took that long
  std::uint64_t messages = 0;
  double bytes = 0;  // on all links together
};

/// `size`: bytes of the full vector (reduce-scatter: the input, all-gather: the output), cut into
/// equal chunks of real, not whole, length. Sends do not block their program; a credit comes back
/// when its message is consumed, at no cost. Errc::invalid_argument: a negative cost, a plan that
/// names a rank or a channel that does not exist, or that never ends. Does not verify the plan.
Result<Prediction> simulate(const Plan& plan, Bytes size, const Costs& costs);

}  // namespace gdrx::plan
