// SPDX-License-Identifier: Apache-2.0
// Calls of a communicator that streams begin.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "collectives/comm/operation.hpp"
#include "collectives/comm/waiting.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

/// What a graph may ask the host for, any number of times: a collective, or the messages of a
/// group.
struct CapturedCall {
  bool messages = false;
  std::vector<Call> calls;  // of messages to oneself alone there are none
  std::chrono::milliseconds timeout{};
};

/// A stream that has not come to a call, and how long who waits goes on waiting for it.
struct StreamPatience {
  const Operation* what = nullptr;
  std::uint64_t begun = 0;  // calls that streams had begun until then
  Deadline deadline = Deadline::never();
  std::optional<Deadline> last{};  // however many calls of graphs come first
};

class StreamCalls {
 public:
  // Any thread.
  /// `operation` begins behind those that were posted before.
  void post(std::shared_ptr<Operation> operation);
  /// The number, from 1 on, of the next that is kept.
  std::uint32_t next_kept() const;
  /// From now on graphs may begin it.
  void keep(CapturedCall call);
  /// Of a call that a graph has begun.
  std::shared_ptr<Operation> operation_of(const gpu::CallRecord& record) const;
  /// Calls are staged through `pinned`, if they do not have it already.
  void use_pinned(std::span<std::byte> pinned);
  std::uint64_t pinned_bytes() const;
  /// Whether one may begin at any time.
  bool expected() const noexcept { return pending > 0 || in_graphs; }

  std::atomic<int> pending{0};  // posted or begun, and not ended
  std::atomic<bool> in_graphs{false};

  // By who drives.
  bool has_posted() const noexcept { return has_posted_; }
  /// Makes them awaited, once `queue` has taken each. If it throws, the rest stays for later.
  void take_posted(const std::function<void(const std::shared_ptr<Operation>&)>& queue);
  /// The next of those that nobody has taken; null: there is none.
  std::shared_ptr<Operation> drop_posted() noexcept;
  /// Groups, as for people: collectives are in the queue.
  void look(Waiting& all, Instant now) const;
  /// Pinned memory, once for all calls. What is not registered is copied once more.
  void register_pinned(RegistrationCache& cache);
  /// Before the memory is another's.
  void forget_registrations(RegistrationCache& cache);

  bool running = false;                           // one that began has not ended
  std::uint64_t begun = 0;                        // so many ever did
  std::list<std::shared_ptr<Operation>> awaited;  // in the order in which they begin
  std::shared_ptr<Operation> messages;            // those of a group, as they run

 private:
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<Operation>> posted_;
  std::list<std::shared_ptr<Operation>> incoming_;  // of who drives
  std::atomic<bool> has_posted_{false};
  std::vector<CapturedCall> captured_;
  std::span<std::byte> pinned_;  // the largest
  bool pinned_is_new_ = false;
  std::uint64_t pinned_bytes_ = 0;  // of all there is
  std::vector<RegistrationRef> registrations_;
};

}  // namespace gdrx
