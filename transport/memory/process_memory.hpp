// SPDX-License-Identifier: Apache-2.0
// Memory of another process of this host, written by the kernel in one copy (cross memory attach).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gdrx/result.hpp"

namespace gdrx {

/// Two words of a process by which others find out whether they may write its memory.
struct ProcessTicket {
  std::int32_t pid = 0;  // 0: not offered
  std::int32_t reserved = 0;
  std::uint64_t words = 0;  // address
  std::uint64_t nonce = 0;  // the first word: tells a stranger's process (another PID namespace)
};

/// This process's words. They live as long as it does: whoever tries late harms nothing.
Result<ProcessTicket> own_process();

/// Whether the process behind `ticket` is the one meant, and lets itself be written. Reads before
/// it writes, so that a stranger's memory is never changed. Errc::system says what the kernel said.
Result<void> try_process(const ProcessTicket& ticket);

/// Writes all of `from` to `address` of process `pid`: Errc::peer_lost where it is gone.
/// As a process id says no more, a process that took the number of one which died since would be
/// written: whoever writes stops when he hears of the death. No allocation unless it fails.
/// Thread-safe.
Result<void> write_process(std::int32_t pid, std::uint64_t address,
                           std::span<const std::byte> from);

}  // namespace gdrx
