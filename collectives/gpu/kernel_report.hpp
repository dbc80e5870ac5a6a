// SPDX-License-Identifier: Apache-2.0
// The host's side of the report, where a kernel says why it gave up.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectives/kernels/call.hpp"

namespace gdrx::gpu {

/// Any thread. From then on the report says why.
inline bool has_given_up(Report& report) noexcept {
  // acquire: pairs with the kernel's fence, so that the rest of the report is seen
  return std::atomic_ref(report.failed).load(std::memory_order_acquire) != 0;
}

/// Any thread: every wait of the kernels ends. Relaxed: nothing but that is told.
inline void end_waits(Report& report) noexcept {
  std::atomic_ref(report.abort).store(1, std::memory_order_relaxed);
}
/// Whether they have been ended, by the host or by a kernel that gave up.
inline bool waits_have_ended(Report& report) noexcept {
  return std::atomic_ref(report.abort).load(std::memory_order_relaxed) != 0;
}

}  // namespace gdrx::gpu
