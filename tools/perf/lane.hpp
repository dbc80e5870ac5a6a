// SPDX-License-Identifier: Apache-2.0
// One direction of one queue pair: which bytes here, which there, and requests between them, one
// thread.
#pragma once

#include <chrono>

#include "tools/perf/nic_buffer.hpp"

namespace gdrx::perf {

struct Lane {
  const QpEnd* end = nullptr;
  ibv_sge piece{};  // here
  std::uint64_t remote = 0;
  std::uint32_t rkey = 0;
};

/// When a wait that makes no progress gives up.
using GiveUp = std::chrono::steady_clock::time_point;
GiveUp give_up_after(double seconds);

ibv_send_wr request_of(const Lane& lane, ibv_wr_opcode opcode);
/// One request that asks for its completion.
Result<void> post(const Lane& lane, ibv_wr_opcode opcode);
/// Errors: a completion with an error, Errc::timeout.
Result<void> completion(const Lane& lane, GiveUp end);
/// Until the byte at `at` is another than `before`, and which. The last byte of a message lands
/// last: what perftest relies on, too. Errors: Errc::timeout.
Result<std::uint8_t> arrival(const std::byte* at, std::uint8_t before, GiveUp end);

}  // namespace gdrx::perf
