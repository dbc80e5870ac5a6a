// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/process_memory.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>

namespace gdrx {
namespace {

void* pointer_to(std::uint64_t address) noexcept { return std::bit_cast<void*>(address); }

}  // namespace

Result<ProcessTicket> own_process() {
  static std::array<std::uint64_t, 2> words;
  static const int failure = getrandom(words.data(), sizeof words[0], 0) == sizeof words[0]
                                 ? 0
                                 : errno;  // once: ranks may be threads
  if (failure != 0) return fail(Errc::system, "getrandom", failure);
  return ProcessTicket{getpid(), 0, reinterpret_cast<std::uint64_t>(words.data()), words[0]};
}

Result<void> try_process(const ProcessTicket& ticket) {
  std::uint64_t word = 0;
  iovec here{&word, sizeof word};
  iovec there{pointer_to(ticket.words), sizeof word};
  if (process_vm_readv(ticket.pid, &here, 1, &there, 1, 0) != sizeof word) {
    return fail(Errc::system, fmt::format("process_vm_readv of process {}", ticket.pid), errno);
  }
  if (word != ticket.nonce) {
    return fail(Errc::protocol, fmt::format("process {} is another one here", ticket.pid));
  }
  // Everybody writes the same, so it does not matter who is first.
  there.iov_base = pointer_to(ticket.words + sizeof word);
  if (process_vm_writev(ticket.pid, &here, 1, &there, 1, 0) != sizeof word) {
    return fail(Errc::system, fmt::format("process_vm_writev to process {}", ticket.pid), errno);
  }
  return {};
}

Result<void> write_process(std::int32_t pid, std::uint64_t address,
                           std::span<const std::byte> from) {
  while (!from.empty()) {
    iovec here{const_cast<std::byte*>(from.data()), from.size()};
    iovec there{pointer_to(address), from.size()};
    const ssize_t written = process_vm_writev(pid, &here, 1, &there, 1, 0);
    if (written <= 0) {
      const int why = written == 0 ? EFAULT : errno;
      return fail(why == ESRCH ? Errc::peer_lost : Errc::system,
                  fmt::format("{} bytes to address {:#x} of process {}", from.size(), address, pid),
                  why);
    }
    address += static_cast<std::uint64_t>(written);
    from = from.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace gdrx
