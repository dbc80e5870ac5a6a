// SPDX-License-Identifier: Apache-2.0
// Point-to-point messages over Endpoints. Each is a flow: cut into slices by its own length, and
// going on by itself, whatever else the two ranks or the communicator have under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/exec/execution.hpp"
#include "collectives/exec/outbox.hpp"
#include "collectives/exec/word.hpp"

namespace gdrx::exec {

/// One message, from post() until take_ended(). Its place in memory must not change in between, nor
/// its buffer, which stays the caller's.
struct Flow {
  bool send = true;
  Rank peer{};
  std::byte* buffer = nullptr;  // read only if send
  std::uint64_t bytes = 0;
  Word word;  // post() counts its sequence
  void* owner = nullptr;

  // Flows' own.
  RegistrationRef registration{};  // of the buffer, or null
  std::uint64_t slice = 0;         // bytes of all slices but the last
  std::uint64_t at = 0;            // bytes that were handed over
  std::uint32_t unfinished_writes = 0;
  std::uint64_t cookie = 0;  // of its writes
  bool handed_over = false;  // all of it
  Counters counters;
  Flow* next = nullptr;  // of the same peer and direction, later of those that have ended
};

/// Messages between two ranks are taken in the order in which they were posted, each way. Used by
/// the thread that drives the communicator.
class Flows {
 public:
  explicit Flows(Links& links);
  /// Connects to the peer at its first message.
  Result<void> post(Flow& flow);
  /// Whether any flow has not ended, or a credit is still owed.
  bool busy() const noexcept { return !active_.empty() || unfinished_ > 0; }
  /// One round over all peers that have flows. Never blocks. True: something was done.
  Result<bool> step();
  /// A flow that has ended since, or null.
  Flow* take_ended() noexcept;
  /// Of a write whose cookie is_mine().
  void on_write_done(std::uint64_t cookie) noexcept;
  static bool is_mine(std::uint64_t cookie) noexcept {
    return cookie != kNoCookie && (cookie & kCookie) != 0;
  }
  /// Forgets all flows: nothing of them is read or written by this object any more.
  void clear() noexcept;
  /// What the flow waits for, for a person.
  std::string waiting_for(const Flow& flow) const;

 private:
  static constexpr std::uint64_t kCookie = std::uint64_t{1} << 62;
  struct Queue {
    Flow* first = nullptr;
    Flow* last = nullptr;
    std::uint64_t posted = 0;
    std::uint64_t slices = 0;  // sent, or received: they go over the lanes in turn
    void push(Flow& flow) noexcept;
    void pop() noexcept;
  };
  struct Pair {
    Queue sends, receives;
    Outbox* outbox = nullptr;             // null: itself
    std::uint64_t owed[kFlowLanes] = {};  // of a lane, messages whose credit is yet to be returned
    std::uint32_t debts = 0;              // of owed, what is not 0
    bool active = false;
    bool idle() const noexcept {
      return sends.first == nullptr && receives.first == nullptr && debts == 0;
    }
  };

  Pair& pair(Rank peer) noexcept { return pairs_[static_cast<std::size_t>(index(peer))]; }
  std::uint32_t lane_of(std::uint64_t slice) const noexcept {
    return links_.shape().first_flow_lane() + static_cast<std::uint32_t>(slice % kFlowLanes);
  }
  MessageHeader header_of(const Flow& flow, Rank source) const noexcept;
  Result<bool> step(Rank peer);
  Result<bool> to_itself(Pair& self);
  Result<bool> send(Pair& to);
  Result<bool> receive(Pair& from, Rank peer);
  Result<void> return_credit(Pair& from, std::uint32_t lane, std::uint64_t consumed);
  Result<void> pay_credits(Pair& from);
  void end_of(Queue& queue, Flow& flow) noexcept;
  void end_if_done(Flow& flow) noexcept;

  Links& links_;
  std::vector<Pair> pairs_;          // by rank
  std::vector<Rank> active_;         // whose pairs are not idle; room for all
  std::vector<Flow*> writers_;       // by cookie; null: free
  std::vector<std::uint32_t> free_;  // of writers_; room for all
  std::uint64_t unfinished_ = 0;     // flows that have not ended
  Queue ended_;
};

}  // namespace gdrx::exec
