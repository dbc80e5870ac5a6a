// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>

namespace gdrx::stats {
namespace {

Page nobody;  // where there is no page; in .bss, touched only then
std::atomic<Page*> current{&nobody};
Connection spare;
std::mutex mutex;

template <std::size_t kSize>
void put(std::array<char, kSize>& to, std::string_view text) {
  to.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), kSize - 1), to.begin());
}

Page* make(int pid) {
  const std::string path = page_path(pid);
  unlink(path.c_str());  // a dead process's of the same number
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(fd, sizeof(Page)) == 0) {
    memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) {
    unlink(path.c_str());
    return nullptr;
  }
  return new (memory) Page;
}

}  // namespace

std::string page_path(int pid) { return "/dev/shm/gdrx-net." + std::to_string(pid); }

Page& page() noexcept { return *current.load(std::memory_order_acquire); }

void start(int abi, const Log& log) {
  const std::lock_guard lock(mutex);
  if (page().pid == getpid()) return;
  Page* made = make(getpid());
  if (made == nullptr) {
    log.info("no counters for `gdrx stats`: {} cannot be made", page_path(getpid()));
    return;
  }
  made->abi = abi;
  made->pid = getpid();
  made->version = kVersion;
  made->magic = kMagic;
  current.store(made, std::memory_order_release);
}

void stop() noexcept {
  const std::lock_guard lock(mutex);
  // The mapping stays: a thread may still be counting.
  if (page().pid == getpid()) unlink(("/dev/shm/gdrx-net." + std::to_string(getpid())).c_str());
}

Connection& take(Way way, std::uint32_t index, std::string_view peer, std::string_view device,
                 std::string_view path) {
  const std::lock_guard lock(mutex);
  Page& all = page();
  all.connections.add(1);
  for (Connection& one : all.connection) {
    if (one.way.load(std::memory_order_relaxed) != 0) continue;
    one.~Connection();
    new (&one) Connection;
    one.index = index;
    put(one.peer, peer);
    put(one.device, device);
    put(one.path, path);
    one.way.store(static_cast<std::uint32_t>(way), std::memory_order_release);
    return one;
  }
  all.full.add(1);
  return spare;
}

void give_back(Connection& connection) noexcept {
  connection.way.store(0, std::memory_order_release);
}

}  // namespace gdrx::stats
