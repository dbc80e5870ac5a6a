// SPDX-License-Identifier: Apache-2.0
// What a Device and its Peers share. Used by the thread that polls.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "transport/fabric/hearing.hpp"
#include "transport/memory/gpu_calls.hpp"
#include "transport/verbs/payload_staging.hpp"
#include "transport/verbs/rail.hpp"

namespace gdrx::verbs {

/// A registered region of ours. Its place in the table is its id, which another takes when it has
/// ended: what is late for the one before has another nonce.
struct LocalRegion {
  std::span<std::byte> bytes;
  std::span<std::byte> reached;  // what NICs read and write: the bytes, or their copy on the host
  MemoryPath path = MemoryPath::host;
  bool flush = false;     // what lands is visible to its GPU after a read through the same NIC
  cuda::HostMemory copy;  // staged
  std::uint32_t nonce = 0;
  std::uint16_t far = 0;  // GPU memory, bit a rail: others are nearer to it
  std::vector<std::unique_ptr<Registration>> registrations;  // by rail
};

/// Counted for people and for tests.
struct Counters {
  std::uint64_t messages = 0;
  std::uint64_t stripes = 0;
  std::uint64_t rails_down = 0;  // port pairs that failed
  std::uint64_t resent = 0;      // fragments sent again after one of them
  std::uint64_t copied = 0;      // bytes of payloads that were not registered
  std::uint64_t staged = 0;      // bytes of GPU memory that went through the host
  std::uint64_t flushes = 0;     // of GPU memory
  std::uint64_t repeated = 0;    // fragments that a NIC delivered again, dropped
  std::uint64_t reconciled = 0;  // fragments without acknowledgement that the peer had counted
};

class Peer;

struct Core {
  Rank self{};
  std::uint64_t nonce = 0;
  Options options;
  Log log;
  const Clock* clock = nullptr;
  std::vector<std::unique_ptr<Rail>> rails;
  std::vector<LocalRegion> regions;
  Staging staging;
  const cuda::GpuCalls* gpu = nullptr;
  std::vector<std::string> gpus;  // one line a GPU and path, with the reason
  Counters counters;
  std::vector<Peer*> stirred;  // in which something may be due; has room for all
  Hearing* hearing = nullptr;  // or nobody asks
  std::optional<Error> error;  // final
  bool isolating = false;      // a lost peer is its Endpoint's matter alone
  Helper helper;

  /// Once for each start of a line, which ends at a semicolon.
  void tell_of_gpu(const std::string& line) {
    const auto start = [](const std::string& text) { return text.substr(0, text.find(';')); };
    const auto same = [&](const std::string& old) { return start(old) == start(line); };
    if (std::any_of(gpus.begin(), gpus.end(), same)) return;
    log.info("verbs: {}", line);
    gpus.push_back(line);
  }
  void finish(Completion completion) { ready_.push_back(completion); }
  void hear(Rank peer) const noexcept {
    if (hearing != nullptr) hearing->hear(peer);
  }
  void fail_with(Error why) {
    if (!error) error = std::move(why);
  }
  std::size_t ready() const noexcept { return ready_.size() - first_; }
  std::size_t take(std::span<Completion> into) {
    const std::size_t count = std::min(into.size(), ready());
    std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(first_), count, into.begin());
    first_ += count;
    if (first_ == ready_.size()) {
      ready_.clear();
      first_ = 0;
    }
    return count;
  }
  void reserve(std::size_t completions) { ready_.reserve(completions); }

 private:
  std::vector<Completion> ready_;  // those from first_ on
  std::size_t first_ = 0;
};

}  // namespace gdrx::verbs
