// SPDX-License-Identifier: Apache-2.0
// Where calls go. A communicator decides once a call: Communicator::route_of(). What explains,
// marks or tells a route reads its row.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "gdrx/types.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx {

enum class Route : std::uint16_t {
  undecided,
  nothing,     // an allReduce of no elements between hosts
  gpu_kernel,  // gpu_call.cpp, on one host
  gpu_hosts,   // gpu_hosts.cpp: GPUs and the network
  staged,      // staged_calls.cpp: by the host while the stream waits
  host,        // start.cpp, and quick.cpp for what is small
};

struct RouteRow {
  Route route{};
  const char* name;
  std::string_view mark;   // in traces, of what runs; empty: there is none
  bool in_stream = false;  // from its beginning to its end
};

inline constexpr std::array<RouteRow, 6> kRoutes{{
    {Route::undecided, "undecided", "", false},
    {Route::nothing, "nothing", "", true},
    {Route::gpu_kernel, "GPU kernel", "launch", true},
    {Route::gpu_hosts, "GPUs and network", "plan of hosts", true},
    {Route::staged, "staged in its stream", "staged plan", true},
    {Route::host, "host", "plan", false},
}};

constexpr const RouteRow& row_of(Route route) noexcept {
  return kRoutes[static_cast<std::size_t>(route)];
}

/// What is known of a call's buffers: what the driver says, or who asks about a call that has none.
struct Buffers {
  MemoryKind (*kind_of)(const void*) = cuda::kind_of;
  bool asked = false;
  bool is_gpu(const void* buffer) const { return kind_of(buffer) == MemoryKind::cuda; }
};

constexpr bool rows_are_in_order() noexcept {
  for (std::size_t at = 0; at < kRoutes.size(); ++at) {
    if (kRoutes[at].route != static_cast<Route>(at)) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

}  // namespace gdrx
