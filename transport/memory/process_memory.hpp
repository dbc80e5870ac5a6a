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

/// What others write on their way into memory of this process. Once it is closed no such write
/// begins any more, however long ago the writer made up his mind: the kernel refuses him here. One
/// that the kernel is in the middle of ends: see is_running().
class WriteGate {
 public:
  static Result<WriteGate> create();
  WriteGate() = default;  // of nobody: closed
  WriteGate(WriteGate&& other) noexcept;
  WriteGate& operator=(WriteGate&& other) noexcept;
  WriteGate(const WriteGate&) = delete;
  WriteGate& operator=(const WriteGate&) = delete;
  ~WriteGate();
  /// In this process, for write_process(); 0: closed from the beginning.
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(page_); }
  void close() noexcept;

 private:
  void* page_ = nullptr;
  bool closed_ = false;
};

/// How a write, or a read, that was not all done has failed.
enum class Written : std::uint8_t {
  all,
  refused,  // by the gate: that process takes its memory back
  gone,     // there is no such process any more
  not_so,   // the kernel does not reach this memory, or no longer lets this process do it
};

/// Writes all of `from` to `address` of process `pid`, through the gate that is at `gate` there.
/// As a process id says no more, a process that took the number of one which died since would be
/// written: whoever writes stops when he hears of the death. No allocation. Thread-safe.
Written write_process(std::int32_t pid, std::uint64_t gate, std::uint64_t address,
                      std::span<const std::byte> from) noexcept;

/// Reads all of `to` from `address` of the process behind the ticket, and its first word before
/// that: gone as well if another process has its number now. No allocation. Thread-safe.
Written read_process(const ProcessTicket& from, std::uint64_t address,
                     std::span<std::byte> to) noexcept;

/// This thread, for is_running() in another process.
std::int32_t own_thread() noexcept;
/// Whether the thread of the process may be in the middle of a system call: not if it is stopped,
/// or gone.
bool is_running(std::int32_t pid, std::int32_t thread) noexcept;

}  // namespace gdrx
