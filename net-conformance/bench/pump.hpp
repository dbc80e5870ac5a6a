// SPDX-License-Identifier: Apache-2.0
// Messages back to back over one communicator: the loop that is timed, nothing else in it.
#pragma once

#include <chrono>
#include <cstddef>

#include "gdrx/result.hpp"
#include "net-conformance/driver/region.hpp"
#include "net-conformance/driver/session.hpp"

namespace gdrx::conformance {

inline constexpr std::size_t kMostWindow = 32;

/// One end: its communicator and its memory, with room for a window of messages, or for the one
/// buffer of all.
struct End {
  Session* session;
  void* comm;
  const Region* region;
  bool sends;
  bool same_buffer;
};

/// `count` messages of `size` bytes, up to `window` of them under way. An error after 30 s without
/// an end of any. Where nothing moves it sleeps for `nap`; zero: it polls.
Result<void> pump(const End& end, std::size_t size, std::size_t count, std::size_t window,
                  std::chrono::microseconds nap);

}  // namespace gdrx::conformance
