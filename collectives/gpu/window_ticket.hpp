// SPDX-License-Identifier: Apache-2.0
// What a rank tells its peers of memory that it registers, and what they may conclude from it.
// Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collectives/gpu/descriptors.hpp"
#include "gdrx/bootstrap.hpp"
#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// How another process maps the memory.
enum class Sharing : std::uint8_t {
  pointer,      // not at all: all ranks are of one process
  ipc,          // of cudaMalloc: by a handle of CUDA IPC, of the whole allocation
  descriptors,  // of cuMemCreate: by a file descriptor for each mapped handle
};

struct WindowTicket {
  std::uint64_t process = 0;  // random, one a process
  std::uint64_t pointer = 0;  // of the registered bytes
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;   // of the pointer in the allocation, or in the first segment
  std::uint64_t again = 0;    // the open window with this very range; 0: none
  std::uint64_t next_id = 0;  // this rank's next window would be that
  Sharing sharing{};
  std::array<std::uint8_t, 64> ipc{};
  DescriptorAddress listener;           // Sharing::descriptors
  std::vector<std::uint64_t> segments;  // their bytes, in the order of addresses; empty for ipc
};

/// 2 TiB of segments of 2 MiB.
inline constexpr std::size_t kMaxSegments = 1 << 20;

Blob encode(const WindowTicket& ticket);
/// Nothing in `bytes` is trusted. Errc::protocol says what is wrong.
Result<WindowTicket> decode_window_ticket(std::span<const std::byte> bytes);

/// What all ranks conclude from all tickets; each concludes the same.
struct WindowPlan {
  std::uint64_t id = 0;
  bool again = false;  // one more owner of the open window `id`
};
/// Errc::mismatch names the ranks that differ.
Result<WindowPlan> plan_window(std::span<const WindowTicket> tickets);

/// Addresses travel, and the driver has them, as integers.
inline std::uint8_t* pointer_to(std::uint64_t address) noexcept {
  return reinterpret_cast<std::uint8_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

/// Where buffers lie in windows: equal on all ranks that mean the same, never 0.
std::uint64_t place_in_windows(std::uint64_t input_window, std::uint64_t input_offset,
                               std::uint64_t output_window, std::uint64_t output_offset) noexcept;

}  // namespace gdrx::gpu
