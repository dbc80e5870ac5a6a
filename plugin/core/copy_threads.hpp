// SPDX-License-Identifier: Apache-2.0
// Threads that copy for NCCL's one progress thread, which by itself is the limit of a fabric whose
// wire is memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/own_thread.hpp"
#include "base/thread_cpus.hpp"
#include "gdrx/config.hpp"

namespace gdrx::net {

/// Messages of fewer bytes are not worth a thread's attention.
inline constexpr std::size_t kLeastByThreads = 32 * 1024;

/// One copy. Stays where it is until `done`.
struct CopyJob {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  bool in_order = true;  // within it as copy_in_order() does it; else by memcpy, which is quicker
  std::atomic<bool> done{true};

  bool is_done() const noexcept { return done.load(std::memory_order_acquire); }
};

class CopyThreads {
 public:
  /// How many are to copy, with the one that calls: `wanted`, or for 0 by the processors that it
  /// may use and the ranks that the job's launcher started here.
  static int count(int wanted, const Environment& environment);
  /// That choice: `usable` processors for this process of `all` that the job has here, `ranks`
  /// processes. One of a rank's share is left to the application's thread, which polls, too.
  static int chosen(int usable, int all, int ranks) noexcept;
  /// The process's own, made for the first who asks and joined with the last. Null: of the
  /// `threads` the one that calls is all. By auto they stay where NCCL has put the thread that
  /// asks: near its GPU.
  static std::shared_ptr<CopyThreads> of_process(int threads, const ThreadHome& home);
  ~CopyThreads();
  CopyThreads(const CopyThreads&) = delete;
  CopyThreads& operator=(const CopyThreads&) = delete;

  /// From any thread; no system call but to wake a thread that sleeps. Done at once if there is no
  /// room for it.
  void start(CopyJob& job) noexcept;
  /// The calling thread, which has other things to look after, does a copy if more are waiting than
  /// threads are awake, or if nobody has begun the oldest for many calls: their processors may be
  /// somebody else's.
  void help() noexcept;
  /// Returns when the job is done.
  void finish(const CopyJob& job) noexcept;

 private:
  // A place's turn: 2n when it is free for its n-th job, 2n + 1 when that is there.
  struct Place {
    std::atomic<std::uint64_t> turn{0};
    CopyJob* job = nullptr;
  };
  CopyThreads() = default;
  void run() noexcept;
  bool take() noexcept;  // the oldest copy that nobody has begun; false: there is none

  std::array<Place, 256> places_;
  alignas(64) std::atomic<std::uint64_t> first_{0};  // not taken
  alignas(64) std::atomic<std::uint64_t> next_{0};   // to be put
  alignas(64) std::atomic<std::uint32_t> calls_{0};  // threads sleep on it
  std::atomic<std::uint64_t> awake_{0};
  std::atomic<bool> stop_{false};
  std::vector<OwnThread> threads_;  // last: they use the others
};

}  // namespace gdrx::net
