// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

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

// Processes that end by a signal or by _exit() leave their page, to be read; after a while it goes.
// Its owner holds a lock on it: process numbers say nothing across containers.
void remove_old_pages() {
  constexpr std::chrono::minutes kKept{10};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error)) {
    if (!entry.path().filename().string().starts_with("gdrx-net.")) continue;
    const auto written = entry.last_write_time(error);
    if (error || std::filesystem::file_time_type::clock::now() - written < kKept) continue;
    const int fd = open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(entry.path().c_str());
    close(fd);
  }
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
  if (memory == MAP_FAILED) {
    close(fd);
    unlink(path.c_str());
    return nullptr;
  }
  flock(fd, LOCK_EX | LOCK_NB);  // held, with the descriptor, until the process ends
  return new (memory) Page;
}

}  // namespace

std::string page_path(int pid) { return "/dev/shm/gdrx-net." + std::to_string(pid); }

Page& page() noexcept { return *current.load(std::memory_order_acquire); }

void start(int abi, const Log& log) {
  const std::lock_guard lock(mutex);
  if (page().pid == getpid()) return;
  remove_old_pages();
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
