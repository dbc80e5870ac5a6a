// SPDX-License-Identifier: Apache-2.0
// Speed through the plugin's calls, between two processes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "gdrx/result.hpp"
#include "net-conformance/driver/channel.hpp"
#include "net-conformance/driver/session.hpp"

namespace gdrx::conformance {

struct BenchOptions {
  std::vector<std::size_t> sizes;    // bytes
  std::size_t window = 8;            // messages under way, 1 to 32
  bool latency = true;               // measured, too
  bool same_buffer = false;          // all messages from and into the same bytes, as perftest does
  std::chrono::microseconds nap{0};  // of an end for which nothing moves; zero: it polls
  double scale = 1;                  // of the number of messages
};

struct Point {
  std::size_t size = 0;    // bytes
  double latency_us = 0;   // half a round trip, median
  double latency_p99 = 0;  // us
  double gigabytes_s = 0;  // one way, with a window
  double messages_s = 0;   // likewise
  double send_cpu_us = 0;  // CPU time of the whole process for a message, the sender's
  double recv_cpu_us = 0;  // and the receiver's
};

/// Both processes call it with the same options, one of them with `leads`; that one gets the
/// points, each when it is measured.
Result<void> bench(Session& session, Channel& channel, bool leads, const BenchOptions& options,
                   const std::function<void(const Point&)>& report);

}  // namespace gdrx::conformance
