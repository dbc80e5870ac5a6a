// SPDX-License-Identifier: Apache-2.0
#include "plugin/stats/writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <new>
#include <string>
#include <system_error>

#include "transport/bootstrap/fork.hpp"

namespace gdrx::stats {
namespace {

Page nobody;  // where there is no page; in .bss, touched only then
std::atomic<Page*> current{&nobody};
Connection spare;
std::mutex mutex;

std::string own_path;  // where this process's page is; under the mutex

// The page of a process that has ended is removed; true: the name is free. Process numbers say
// nothing across containers, so the lock decides. Whoever holds it is the only one that removes the
// file, if the name is still that file's.
bool remove_if_dead(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return errno == ENOENT;
  struct stat locked {};
  struct stat named {};
  const bool dead = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &locked) == 0 &&
                    stat(path.c_str(), &named) == 0 && locked.st_ino == named.st_ino &&
                    unlink(path.c_str()) == 0;
  close(fd);
  return dead;
}

// Processes that end by a signal or by _exit() leave their page, to be read; after a while it goes.
void remove_old_pages() {
  constexpr std::chrono::minutes kKept{10};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error)) {
    if (!entry.path().filename().string().starts_with("gdrx-net.")) continue;
    const auto written = entry.last_write_time(error);
    if (error || std::filesystem::file_time_type::clock::now() - written < kKept) continue;
    remove_if_dead(entry.path().string());
  }
}

// Gives the file the first name of this process that is free.
std::string named(int fd, int pid) {
  constexpr int kMostOfANumber = 64;
  const std::string file = "/proc/self/fd/" + std::to_string(fd);
  for (int again = 0; again < kMostOfANumber;) {
    const std::string path = page_path(pid, again);
    if (linkat(AT_FDCWD, file.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) return path;
    if (errno != EEXIST) return {};
    if (!remove_if_dead(path)) ++again;
  }
  return {};
}

// Mapped by another opening of the file than the locked one: a child of fork() keeps its mappings,
// and with the locked one it would keep the lock of a process that is gone.
void* map_again(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int again = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (again < 0) return MAP_FAILED;
  void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
  close(again);
  return memory;
}

// Locked before it has a name: a page without a lock is nobody's.
Page* make(int pid) {
  const int fd =
      Unforked::open([] { return open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); });
  if (fd < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, sizeof(Page)) == 0) {
    memory = map_again(fd);
  }
  if (memory != MAP_FAILED) own_path = named(fd, pid);
  if (memory == MAP_FAILED || own_path.empty()) {
    if (memory != MAP_FAILED) munmap(memory, sizeof(Page));
    Unforked::close(fd);
    return nullptr;
  }
  return new (memory) Page;  // the descriptor is held until the process ends
}

}  // namespace

std::string page_path(int pid, int again) {
  const std::string path = "/dev/shm/gdrx-net." + std::to_string(pid);
  return again == 0 ? path : path + "." + std::to_string(again);
}

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
  made->magic.store(kMagic, std::memory_order_release);
  current.store(made, std::memory_order_release);
}

void stop() noexcept {
  const std::lock_guard lock(mutex);
  // The mapping stays: a thread may still be counting.
  if (page().pid == getpid()) unlink(own_path.c_str());
}

Connection& take(Way way, std::uint32_t index, std::string_view peer, std::string_view device,
                 std::string_view path) {
  const std::lock_guard lock(mutex);
  Page& all = page();
  all.connections.add(1);
  for (Connection& one : all.connection) {
    if (!one.place.is_free()) continue;
    one.place.begin();
    one.clear();
    one.index.store(index, std::memory_order_relaxed);
    one.peer.put(peer);
    one.device.put(device);
    one.path.put(path);
    one.place.began(way);
    return one;
  }
  all.full.add(1);
  return spare;
}

void give_back(Connection& connection) noexcept { connection.place.end(); }

}  // namespace gdrx::stats
