// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/arena.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace gdrx {
namespace {

constexpr std::size_t kPage = 4096;                      // the first page holds the nonce
constexpr std::uint64_t kMost = std::uint64_t{1} << 46;  // more than a process has addresses for
// Whoever has the descriptor could cut the file, and the others' next access would be a SIGBUS.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<std::byte*> map(int fd, std::size_t bytes) {
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return fail(Errc::system, "mmap of the shared-memory arena", errno);
  return static_cast<std::byte*>(base);
}

}  // namespace

Result<Arena> Arena::create(std::size_t bytes) {
  Arena arena;
  arena.mapped_ = (bytes + 2 * kPage - 1) / kPage * kPage + kPage;
  const int fd = memfd_create("gdrx-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return fail(Errc::system, "memfd_create", errno);
  arena.ticket_ = {getpid(), fd, bytes, 0};
  arena.owns_fd_ = true;
  if (ftruncate(fd, static_cast<off_t>(arena.mapped_)) != 0) {
    return fail(Errc::system, fmt::format("{} bytes of shared memory", arena.mapped_), errno);
  }
  if (fcntl(fd, F_ADD_SEALS, kSeals) != 0) return fail(Errc::system, "fcntl(F_ADD_SEALS)", errno);
  if (getrandom(&arena.ticket_.nonce, sizeof arena.ticket_.nonce, 0) !=
      sizeof arena.ticket_.nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  arena.base_ = GDRX_TRY(map(fd, arena.mapped_));
  std::memcpy(arena.base_, &arena.ticket_.nonce, sizeof arena.ticket_.nonce);
  return arena;
}

Result<Arena> Arena::open(const ArenaTicket& ticket) {
  if (ticket.bytes > kMost) return fail(Errc::protocol, "an arena of an impossible size");
  Arena arena;
  arena.ticket_ = ticket;
  const std::string path = fmt::format("/proc/{}/fd/{}", ticket.pid, ticket.fd);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return fail(Errc::system, "open " + path + " (ranks in different PID namespaces?)", errno);
  }
  arena.ticket_.fd = fd;
  arena.owns_fd_ = true;  // closed by the destructor on each way out of here
  arena.mapped_ = (ticket.bytes + 2 * kPage - 1) / kPage * kPage + kPage;
  struct stat facts {};
  if (fstat(fd, &facts) != 0 || static_cast<std::size_t>(facts.st_size) != arena.mapped_) {
    return fail(Errc::protocol, path + " is not the arena that was announced");
  }
  if (const int seals = fcntl(fd, F_GET_SEALS); seals < 0 || (seals & kSeals) != kSeals) {
    return fail(Errc::protocol, path + " may be cut under those who map it: it is not sealed");
  }
  arena.base_ = GDRX_TRY(map(fd, arena.mapped_));
  if (std::memcmp(arena.base_, &ticket.nonce, sizeof ticket.nonce) != 0) {
    return fail(Errc::protocol, path + " is another process's shared memory");
  }
  arena.seal();
  return arena;
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(mapped_, other.mapped_);
  std::swap(ticket_, other.ticket_);
  std::swap(owns_fd_, other.owns_fd_);
  return *this;
}

Arena::~Arena() {
  seal();
  if (base_ != nullptr) munmap(base_, mapped_);
}

void Arena::seal() noexcept {
  if (owns_fd_) close(ticket_.fd);
  owns_fd_ = false;
}

std::span<std::byte> Arena::bytes() const noexcept { return {base_ + kPage, ticket_.bytes}; }

}  // namespace gdrx
