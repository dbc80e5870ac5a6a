// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/process_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

namespace gdrx {
namespace {

constexpr std::size_t kGateBytes = 4096;  // the kernel rounds up

void* pointer_to(std::uint64_t address) noexcept { return std::bit_cast<void*>(address); }

}  // namespace

Result<ProcessTicket> own_process() {
  static std::array<std::uint64_t, 2> words;
  static std::mutex mutex;  // ranks may be threads
  const std::lock_guard lock(mutex);
  if (words[0] == 0 && getrandom(words.data(), sizeof words[0], 0) != sizeof words[0]) {
    words[0] = 0;
    return fail(Errc::system, "getrandom", errno);
  }
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

Result<WriteGate> WriteGate::create() {
  void* const page =
      mmap(nullptr, kGateBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return fail(Errc::system, "mmap", errno);
  WriteGate gate;
  gate.page_ = page;
  return gate;
}

WriteGate::WriteGate(WriteGate&& other) noexcept { *this = std::move(other); }

WriteGate& WriteGate::operator=(WriteGate&& other) noexcept {
  std::swap(page_, other.page_);
  std::swap(closed_, other.closed_);
  return *this;
}

// What was closed stays: whoever comes late must not find other memory at its address.
WriteGate::~WriteGate() {
  if (page_ != nullptr && !closed_) munmap(page_, kGateBytes);
}

void WriteGate::close() noexcept {
  if (page_ == nullptr || std::exchange(closed_, true)) return;
  // A mapping of its own instead, which has no memory: mprotect() would keep the page.
  if (mmap(page_, kGateBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
           -1, 0) == MAP_FAILED) {
    mprotect(page_, kGateBytes, PROT_NONE);
  }
}

// The kernel writes one piece after another, and tells how far it came.
Written write_process(std::int32_t pid, std::uint64_t gate, std::uint64_t address,
                      std::span<const std::byte> from) noexcept {
  std::uint64_t word = 0;
  while (!from.empty()) {
    const iovec here[] = {{&word, sizeof word}, {const_cast<std::byte*>(from.data()), from.size()}};
    const iovec there[] = {{pointer_to(gate), sizeof word}, {pointer_to(address), from.size()}};
    const ssize_t written = process_vm_writev(pid, here, 2, there, 2, 0);
    if (written < 0 && errno == ESRCH) return Written::gone;
    if (written < 0 && errno == EFAULT) return Written::refused;
    if (written <= static_cast<ssize_t>(sizeof word)) return Written::not_so;
    const auto done = static_cast<std::size_t>(written) - sizeof word;
    address += done;
    from = from.subspan(done);
  }
  return Written::all;
}

Written read_process(const ProcessTicket& from, std::uint64_t address,
                     std::span<std::byte> to) noexcept {
  std::uint64_t word = 0;
  while (!to.empty()) {
    const iovec here[] = {{&word, sizeof word}, {to.data(), to.size()}};
    const iovec there[] = {{pointer_to(from.words), sizeof word}, {pointer_to(address), to.size()}};
    const ssize_t read = process_vm_readv(from.pid, here, 2, there, 2, 0);
    if (read < 0 && errno == ESRCH) return Written::gone;
    if (read < static_cast<ssize_t>(sizeof word)) return Written::not_so;
    if (word != from.nonce) return Written::gone;
    const auto done = static_cast<std::size_t>(read) - sizeof word;
    if (done == 0) return Written::not_so;
    address += done;
    to = to.subspan(done);
  }
  return Written::all;
}

std::int32_t own_thread() noexcept { return static_cast<std::int32_t>(syscall(SYS_gettid)); }

// "1234 (any name) R ...": the state stands behind the last bracket.
bool is_running(std::int32_t pid, std::int32_t thread) noexcept {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/task/%d/stat", pid, thread);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno != ENOENT;
  std::array<char, 256> text{};
  const ssize_t length = read(fd, text.data(), text.size());
  close(fd);
  if (length <= 0) return length < 0 && errno != ESRCH;
  const std::string_view stat(text.data(), static_cast<std::size_t>(length));
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= stat.size()) return true;
  return std::string_view("TtZXx").find(stat[name_end + 2]) == std::string_view::npos;
}

}  // namespace gdrx
