// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/fork.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>

namespace gdrx {
namespace {

constexpr std::size_t kBits = 64;
constexpr std::size_t kMostDescriptors =
    1 << 20;  // Linux's default for fs.nr_open: no process has more

// Constant-initialised and never destroyed: objects with static storage use it to their end.
std::array<std::uint64_t, kMostDescriptors / kBits> entered{};
std::size_t words = 0;  // of `entered` that were ever used
std::atomic<std::uint64_t> forks_so_far{0};

std::mutex& mutex() {
  alignas(std::mutex) static std::array<std::byte, sizeof(std::mutex)> room;
  static auto* const made = new (room.data()) std::mutex;
  return *made;
}

void before_fork() { mutex().lock(); }
void after_fork_in_parent() { mutex().unlock(); }

// Async-signal-safe: the lock is this thread's own, and nothing is allocated. A dead descriptor is
// an unconnected socket, of which reads, writes and polls fail at once.
void after_fork_in_child() {
  forks_so_far.fetch_add(1, std::memory_order_relaxed);
  int dead = -1;
  for (std::size_t word = 0; word < words; ++word) {
    for (std::uint64_t rest = entered[word]; rest != 0; rest &= rest - 1) {
      const int fd = static_cast<int>(word * kBits) + __builtin_ctzll(rest);
      if (dead < 0) {
        ::close(fd);  // first: there may be no room for one more
        dead = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (dead == fd) continue;
      }
      if (dead < 0) {
        ::close(fd);
      } else {
        dup3(dead, fd, O_CLOEXEC);
      }
    }
  }
  const auto at = static_cast<std::size_t>(dead);
  if (dead >= 0 && (entered[at / kBits] >> at % kBits & 1U) == 0) ::close(dead);
  mutex().unlock();
}

void watch_forks() noexcept {
  static const int once = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  static_cast<void>(once);
}

}  // namespace

Unforked::Hold::Hold() noexcept {
  watch_forks();
  mutex().lock();
}

// errno is make's.
Unforked::Hold::~Hold() {
  const int error = errno;
  mutex().unlock();
  errno = error;
}

bool Unforked::limit_reached() noexcept { return errno == EMFILE; }

void Unforked::add(int fd) noexcept {
  const auto at = static_cast<std::size_t>(fd);
  if (fd < 0 || at >= kMostDescriptors) return;
  entered[at / kBits] |= std::uint64_t{1} << at % kBits;
  words = std::max(words, at / kBits + 1);
}

void Unforked::keep(int fd) noexcept {
  if (fd < 0) return;
  const Hold hold;
  add(fd);
}

void Unforked::remove(int fd) noexcept {
  const auto at = static_cast<std::size_t>(fd);
  if (at < kMostDescriptors) entered[at / kBits] &= ~(std::uint64_t{1} << at % kBits);
}

void Unforked::close(int fd) noexcept {
  if (fd < 0) return;
  const Hold hold;
  remove(fd);
  ::close(fd);
}

void Unforked::forget(int fd) noexcept {
  if (fd < 0) return;
  const Hold hold;
  remove(fd);
}

bool Unforked::raise_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

Birthplace::Birthplace() noexcept {
  watch_forks();
  forks_ = forks();
}

std::uint64_t Birthplace::forks() noexcept { return forks_so_far.load(std::memory_order_relaxed); }

std::uint64_t descriptor_limit() noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

}  // namespace gdrx
