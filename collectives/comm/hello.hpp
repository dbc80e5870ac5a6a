// SPDX-License-Identifier: Apache-2.0
// What each rank tells all others once, while a communicator is made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "collectives/comm/host.hpp"
#include "collectives/gpu/path.hpp"
#include "gdrx/bootstrap.hpp"
#include "gdrx/config.hpp"
#include "gdrx/result.hpp"
#include "transport/memory/arena.hpp"
#include "transport/memory/process_memory.hpp"

namespace gdrx {

struct Hello {
  std::uint32_t version = 0;  // GDRX_VERSION
  std::int32_t pid = 0;
  std::string host_id;
  std::string host_name;
  std::string settings;  // every variable that all ranks must agree on, printed
  std::string cpu;       // model
  std::string gpu_name;  // of the GPU that is offered; empty: none
  CpuSet cpus;
  ArenaTicket memory;     // rank 0 only; pid 0 where there is none
  ProcessTicket process;  // pid 0 where nobody writes this process
  Blob device_address;    // empty where no fabric could be opened
  Blob receive_ring_key;
  gpu::Ticket gpu;         // process 0 where no GPU is offered
  std::string no_gpu;      // and why not
  bool needs_gpu = false;  // it was asked for by name
};

Blob encode(const Hello& hello);
/// Nothing in `bytes` is trusted. Errc::protocol says what is wrong with it.
Result<Hello> decode_hello(std::span<const std::byte> bytes);

/// Every variable from which ranks derive the same decision, and the tuning's fingerprint.
std::string settings_of(const Config& config, std::uint64_t tuning);

/// Errc::mismatch says who has set what otherwise than rank 0.
Result<void> check_settings(std::span<const Hello> peers);

/// What each of two ranks' settings has that the other's has not.
struct Difference {
  std::string ours;
  std::string theirs;
};
Difference difference_of(std::string_view ours, std::string_view theirs);

}  // namespace gdrx
