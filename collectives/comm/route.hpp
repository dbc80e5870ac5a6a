// SPDX-License-Identifier: Apache-2.0
// Where calls go. A communicator decides once a call: Communicator::route_of().
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gdrx {

enum class Route : std::uint8_t {
  undecided,
  nothing,     // an allReduce of no elements between hosts
  gpu_kernel,  // gpu_call.cpp, on one host
  gpu_hosts,   // gpu_hosts.cpp: GPUs and the network
  staged,      // staged_calls.cpp: by the host while the stream waits
  host,        // start.cpp, and quick.cpp for what is small
};

struct RouteRow {
  Route route{};
  std::string_view name;
  bool in_stream = false;  // from its beginning to its end
};

inline constexpr std::array<RouteRow, 6> kRoutes{{
    {Route::undecided, "undecided", false},
    {Route::nothing, "nothing", true},
    {Route::gpu_kernel, "GPU kernel", true},
    {Route::gpu_hosts, "GPUs and network", true},
    {Route::staged, "staged in its stream", true},
    {Route::host, "host", false},
}};

constexpr const RouteRow& row_of(Route route) noexcept {
  return kRoutes[static_cast<std::size_t>(route)];
}

constexpr bool rows_are_in_order() noexcept {
  for (std::size_t at = 0; at < kRoutes.size(); ++at) {
    if (kRoutes[at].route != static_cast<Route>(at)) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

}  // namespace gdrx
