// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/copy_threads.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "plugin/core/copy.hpp"
#include "plugin/core/launcher.hpp"

namespace gdrx::net {
namespace {

// All-reduce of 128 MiB on two H200: 4.4 GB/s with one, 13.1 with 4, 15.4 with 6, 15.9 with 8
// (results/nccl/nccl-2xh200-copy-threads.txt). Each GPU has its process, and that its threads: with
// 8 processes on 32 processors 3 are best, and 6 take twice as long for 2 MiB
// (results/nccl/nccl-2xh200-shared-host.txt).
constexpr int kMost = 6;
constexpr int kProcessorsEach = 4;
// About 50 us: while messages flow nobody sleeps, which takes longer than a copy.
constexpr int kLooks = 1000;
// Calls of help(), about as long.
constexpr int kPatience = 100;

constexpr pid_t kThisProcess = 0;

// 1 if it cannot be told.
int processors_of(pid_t process) noexcept {
  cpu_set_t set;
  return sched_getaffinity(process, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

void copy(CopyJob& job) noexcept {
  if (job.in_order) {
    copy_in_order(job.to, job.from, job.bytes);
  } else {
    std::memcpy(job.to, job.from, job.bytes);
  }
  job.done.store(true, std::memory_order_release);
}

}  // namespace

int CopyThreads::count(int wanted, const Environment& environment) {
  if (wanted > 0) return wanted;
  const int usable = processors_of(kThisProcess);
  // Of a container the first process has what the container has.
  const int all = std::max(usable, processors_of(1));
  return chosen(usable, all, ranks_here(environment));
}

int CopyThreads::chosen(int usable, int all, int ranks) noexcept {
  const int share = std::min(usable, all / std::max(1, ranks));
  return std::clamp(std::min(usable / kProcessorsEach, share - 1), 1, kMost);
}

std::shared_ptr<CopyThreads> CopyThreads::of_process(int threads, const ThreadHome& home) {
  // Leaked: NCCL's threads may come here while the process ends.
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::weak_ptr<CopyThreads>;
  const std::lock_guard lock(mutex);
  auto made = known.lock();
  if (made || threads < 2) return made;
  made = std::shared_ptr<CopyThreads>(new CopyThreads);
  try {
    for (int i = 1; i < threads; ++i) {
      made->threads_.emplace_back("gdrx-net-copy", home, [of = made.get()] { of->run(); });
    }
  } catch (const std::exception& error) {
    home.log.warn("{} of {} threads that copy: {}", made->threads_.size(), threads - 1,
                  error.what());
  }
  known = made;
  return made;
}

CopyThreads::~CopyThreads() {
  stop_.store(true);
  calls_.fetch_add(1);
  calls_.notify_all();
}

void CopyThreads::start(CopyJob& job) noexcept {
  job.done.store(false, std::memory_order_relaxed);
  std::uint64_t mine = next_.load(std::memory_order_relaxed);
  while (true) {
    Place& place = places_[mine % places_.size()];
    const std::uint64_t turn = place.turn.load(std::memory_order_acquire);
    const std::uint64_t free = mine / places_.size() * 2;
    if (turn < free) return copy(job);  // full
    if (turn == free && next_.compare_exchange_weak(mine, mine + 1, std::memory_order_relaxed)) {
      place.job = &job;
      place.turn.store(free + 1, std::memory_order_release);
      break;
    }
    if (turn != free) mine = next_.load(std::memory_order_relaxed);
  }
  calls_.fetch_add(1);
  calls_.notify_one();
}

void CopyThreads::help() noexcept {
  const std::uint64_t first = first_.load(std::memory_order_relaxed);
  const std::uint64_t waiting = next_.load(std::memory_order_relaxed) - first;
  if (waiting == 0) return;
  thread_local std::uint64_t oldest = 0;
  thread_local int calls = 0;
  calls = first == oldest ? calls + 1 : 0;
  oldest = first;
  // Of the next one, too, if nobody else has begun any since.
  if (calls > kPatience) ++oldest;
  if (waiting > awake_.load(std::memory_order_relaxed) || calls > kPatience) take();
}

bool CopyThreads::take() noexcept {
  std::uint64_t mine = first_.load(std::memory_order_relaxed);
  while (true) {
    Place& place = places_[mine % places_.size()];
    const std::uint64_t turn = place.turn.load(std::memory_order_acquire);
    const std::uint64_t there = mine / places_.size() * 2 + 1;
    if (turn < there) return false;
    if (turn == there && first_.compare_exchange_weak(mine, mine + 1, std::memory_order_relaxed)) {
      CopyJob& job = *place.job;
      place.turn.store(there + 1, std::memory_order_release);
      copy(job);
      return true;
    }
    if (turn != there) mine = first_.load(std::memory_order_relaxed);
  }
}

void CopyThreads::finish(const CopyJob& job) noexcept {
  while (!job.is_done()) {
    if (!take()) pause();
  }
}

void CopyThreads::run() noexcept {
  while (true) {
    const std::uint32_t seen = calls_.load();
    if (stop_.load()) return;
    awake_.fetch_add(1);
    for (int looks = 0; looks < kLooks; ++looks) {
      if (take()) looks = 0;
      pause();
    }
    awake_.fetch_sub(1);
    calls_.wait(seen);  // not if somebody has called since
  }
}

}  // namespace gdrx::net
