// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, over Endpoints or through their rings. Each is a flow: cut into
// slices by its own length, and going on by itself, whatever else the two ranks or the communicator
// have under way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/exec/call_signature.hpp"
#include "collectives/exec/credits.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/pair_ring.hpp"
#include "collectives/exec/send_ring.hpp"
#include "transport/memory/process_memory.hpp"

namespace gdrx::exec {

/// One message, from post() until take_ended(). Its place in memory must not change in between, nor
/// its buffer, which stays the caller's.
struct Flow {
  bool send = true;
  Rank peer{};
  std::byte* buffer = nullptr;  // read only if send
  std::uint64_t bytes = 0;
  CallSignature signature;  // of a send_recv, post() counts its sequence
  std::uint64_t count = 0;  // elements, for a person
  void* owner = nullptr;
  /// A send from this receive's buffer, which takes no byte before that has gone; of as many bytes,
  /// or null.
  const Flow* behind = nullptr;

  // Flows' own.
  RegistrationRef registration{};  // of the buffer, or null
  std::uint64_t slice = 0;         // bytes of all slices but the last
  std::uint64_t at = 0;            // bytes that were handed over
  std::uint32_t unfinished_writes = 0;
  std::uint64_t cookie = 0;  // of its writes
  bool handed_over = false;  // all of it
  bool lent = false;         // a send, until its receiver has read it
  bool cut = false;          // the kernel does not read it
  Counters counters;
  Flow* next = nullptr;  // of the same peer and direction, later of those that have ended

  bool ended() const noexcept { return handed_over && unfinished_writes == 0; }
};

/// Where flows go: lanes of every receive_ring that nobody else uses meanwhile, and the mark of
/// their cookies.
struct FlowLanes {
  std::uint32_t first = 0;
  std::uint32_t count = 1;  // at most kFlowLanes
  std::uint64_t mark = 0;
  /// Of sends and receives, beside whatever else runs.
  static FlowLanes of_pairs(const RingShape& shape) noexcept {
    return {shape.first_flow_lane(), kFlowLanes, std::uint64_t{1} << 62};
  }
  /// Of a collective, instead of a plan.
  static FlowLanes of_plans(const RingShape& shape) noexcept {
    return {0, std::min(kFlowLanes, shape.first_flow_lane()), 0};
  }
};

/// How ranks of one host reach each other.
struct Neighbours {
  std::optional<PairRings> rings{};            // nobody else's; empty: over Endpoints
  std::span<const ProcessTicket> processes{};  // by rank; empty: no memory of theirs is read
  /// With these: long messages are lent, not copied. Where each rank has a core, two that copy are
  /// faster than one in the kernel, if the ring has room and lines pass fast between the cores.
  bool lends = false;
};

/// A send or a receive, as its caller gives it.
struct Message {
  Rank peer{};
  DataType type{};
  bool sends = false;
  std::uint64_t count = 0;  // elements
  std::uint64_t bytes = 0;
  const std::byte* from = nullptr;  // of a send
  std::byte* to = nullptr;          // of a receive
};

/// Messages between two ranks are taken in the order in which they were posted, each way. Used by
/// the thread that drives the communicator.
class Flows {
 public:
  /// `here`: what it points to outlives it.
  Flows(Links& links, const FlowLanes& lanes, const Neighbours& here = {});
  /// Connects to the peer at its first message.
  Result<void> post(Flow& flow);
  /// A send or a receive from its beginning to its end, without a flow; it is tried so
  /// many times. False: it is long or has no ring, another is before it, there is no room or
  /// nothing has come, or it does not match; then nothing was done.
  bool run_now(const Message& what, int looks);
  /// Whether messages with the peer go through rings.
  bool by_ring(Rank peer) const noexcept { return here_.rings && peer != links_.self(); }
  /// Whether any flow has not ended, or a credit is still owed.
  bool busy() const noexcept { return !active_.empty() || unfinished_ > 0 || credits_.owes(); }
  /// Whether the fabric has to be polled for it.
  bool on_fabric() const noexcept { return !here_.rings && busy(); }
  /// One round over all peers that have flows. Never blocks. True: something was done.
  Result<bool> step();
  /// A flow that has ended since, or null.
  Flow* take_ended() noexcept;
  void on_write_done(std::uint64_t cookie) noexcept;
  /// Whether a write's cookie has their mark.
  bool is_mine(std::uint64_t cookie) const noexcept {
    return cookie != kNoCookie && (cookie & lanes_.mark) != 0;
  }
  /// Forgets all flows: nothing of them is read or written by this object any more.
  void clear() noexcept;
  /// What the flow waits for, for a person.
  std::string waiting_for(const Flow& flow) const;

 private:
  struct Queue {
    Flow* first = nullptr;
    Flow* last = nullptr;
    std::uint64_t posted = 0;
    std::uint64_t slices = 0;  // sent, or received: they go over the lanes in turn
    void push(Flow& flow) noexcept;
    void pop() noexcept;
  };
  struct Ring {
    RingSender out;
    RingReceiver in;
    std::uint32_t slices = 0;  // long ones that were copied since one was timed
    std::uint32_t slow = 0;    // those that were timed last and all took long
    std::uint32_t loans = 0;   // long messages that are lent before one is copied again
  };
  struct Pair {
    Queue sends, receives;
    SendRing* send_ring = nullptr;  // null: itself, or by the ring
    std::unique_ptr<Ring> ring;     // from the first message on
    bool active = false;
    bool idle() const noexcept { return sends.first == nullptr && receives.first == nullptr; }
  };

  Pair& pair(Rank peer) noexcept { return pairs_[static_cast<std::size_t>(index(peer))]; }
  std::uint32_t lane_of(std::uint64_t slice) const noexcept {
    return lanes_.first + static_cast<std::uint32_t>(slice % lanes_.count);
  }
  Result<void> connect(Pair& pair, Rank peer);
  bool lends(const Ring& ring) const noexcept {
    return (here_.lends || ring.loans > 0) && !here_.processes.empty();
  }
  Result<Progress> copy_in(Ring& ring, const SliceHead& head,
                           std::span<const std::byte> bytes) const;
  static Result<Progress> receive_now(Ring& ring, const Message& what);
  Result<Progress> hand_over(Pair& to, const Flow& flow, const MessageHeader& header);
  Result<bool> lend(Pair& to, Flow& flow);
  Result<bool> take(Pair& from, Rank peer, Flow& flow);
  Result<bool> take_slice(Ring& ring, Rank peer, Flow& flow);
  bool read_loan(Ring& ring, Rank peer, Flow& flow) const noexcept;
  MessageHeader header_of(const Flow& flow, Rank source) const noexcept;
  Result<bool> step(Rank peer);
  Result<bool> to_itself(Pair& self);
  Result<bool> send(Pair& to);
  Result<bool> receive(Pair& from, Rank peer);
  void end_of(Queue& queue, Flow& flow) noexcept;
  void end_if_done(Flow& flow) noexcept;

  Links& links_;
  FlowLanes lanes_;
  Neighbours here_;
  std::vector<Pair> pairs_;          // by rank
  std::vector<Rank> active_;         // whose pairs are not idle; room for all
  std::vector<Flow*> writers_;       // by cookie; null: free
  std::vector<std::uint32_t> free_;  // of writers_; room for all
  std::uint64_t unfinished_ = 0;     // flows that have not ended
  Credits credits_;
  Queue ended_;
};

}  // namespace gdrx::exec
