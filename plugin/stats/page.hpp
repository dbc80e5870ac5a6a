// SPDX-License-Identifier: Apache-2.0
// The counters as they lie in shared memory, where `gdrx stats` reads them while the process runs,
// hangs or after it has crashed. The plugin alone writes; nobody is asked, no thread serves it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "plugin/stats/place.hpp"

namespace gdrx::stats {

inline constexpr std::uint32_t kMagic = 0x73786467;  // "gdxs"
inline constexpr std::uint32_t kVersion = 4;
inline constexpr std::size_t kConnections = 1024;
inline constexpr std::size_t kBuckets = 24;  // latency: below 2^i us

/// Written by one thread at a time, read by anybody: relaxed is enough.
class Counter {
 public:
  void add(std::uint64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(std::uint64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};
static_assert(sizeof(Counter) == 8 && std::atomic<std::uint64_t>::is_always_lock_free);

/// One connection. Its slot is used again after it has closed.
struct alignas(64) Connection {
  Place place;
  std::atomic<std::uint32_t> index{0};
  Label peer;
  Label device;
  Label path;  // "ucx: posix, cma"
  Counter messages;
  Counter bytes;
  Counter small;                          // messages of one chunk
  Counter chunks;                         // written or taken
  Counter direct;                         // messages written straight to their place
  Counter eager;                          // messages before their receive was known
  Counter waits;                          // calls that had to be tried again
  Counter stalls;                         // reported
  Counter open;                           // requests under way
  std::array<Counter, kBuckets> latency;  // from the request to its completion

  /// As at first, but for its place.
  void clear() noexcept {
    index.store(0, std::memory_order_relaxed);
    for (Label* label : {&peer, &device, &path}) label->put({});
    for (Counter* counter :
         {&messages, &bytes, &small, &chunks, &direct, &eager, &waits, &stalls, &open}) {
      counter->set(0);
    }
    for (Counter& bucket : latency) bucket.set(0);
  }
};

struct Page {
  std::atomic<std::uint32_t> magic{0};  // behind the rest: whoever reads it has that
  std::uint32_t version = 0;
  std::int32_t pid = 0;
  std::int32_t abi = 0;
  alignas(64) Counter polls;  // of the transport that brought something
  Counter completions;        // that they brought
  Counter connections;        // made since the start
  Counter full;               // connections that found no slot here
  Counter registrations;      // of memory with a device
  Counter registration_hits;  // asked for and there already
  Counter rails_down;         // that failed, over all device contexts
  Counter resent;             // parts of messages sent again after that
  Counter copied;             // bytes copied to be sent, since they were not registered
  Counter thread_chunks;      // that went to the threads that copy
  Counter naps;               // of calls, over NICs in software
  std::array<Connection, kConnections> connection;
};

/// "/dev/shm/gdrx-net.1234"; "/dev/shm/gdrx-net.1234.1" where a process of another PID namespace
/// has that number, too. Its owner holds a lock (flock) on the file while it lives.
std::string page_path(int pid, int again = 0);

}  // namespace gdrx::stats
