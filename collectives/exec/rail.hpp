// SPDX-License-Identifier: Apache-2.0
// The sum of one rank's memory on each of several hosts, NICs reading and writing that memory
// itself, by any plan that RailPlan takes. Knows of GPUs only that somebody else adds for it.
//
// A part of the vector takes a turn, and turn t the slot t % kSlots of every rank's area (some
// turns are left out; "before" is the last turn of the slot that was not). What a plan receives to
// add lands beside the part, each message in a place of its own; what is a result lands in the
// part. Every message has an immediate. Before a sum, before a result is sent on (by another NIC,
// perhaps) and in the end, whoever was written to flushes.
//
// Nobody writes what has not been read, without a credit being sent, as long as begin(t) comes
// after whatever has read or written the slot in the turn before, and since in these plans every
// message that is added goes into a result that all ranks get:
//   beside the part: a rank writes there in turn t after it has ended the turn before, so with all
//     results of that in its hands. The receiver had added whatever it was to add for them.
//   in the part: a result of turn t has this rank's own chunk in it, which it sent after begin(t),
//     and does not touch again until the result comes. What the NIC might send again of it, its
//     answer lost, the receiver's NIC drops.
//   what is being sent: a turn ends when all writes that read the slot are done.
// So a peer is at most one turn of a slot ahead: a bit for each message of two turns is enough. It
// may be set before this rank has begun the turn.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/exec/execution.hpp"
#include "collectives/exec/rail_layout.hpp"
#include "collectives/exec/rail_plan.hpp"
#include "collectives/exec/send_ring.hpp"
#include "collectives/trace/span.hpp"
#include "gdrx/transport.hpp"

namespace gdrx::exec {

/// Adds memory of a rail's area where it lies.
class RailAdder {
 public:
  struct Sum {
    std::byte* own = nullptr;           // an operand, and where the sum goes
    const std::byte* landed = nullptr;  // the other operands
    Bytes stride = 0;                   // between two of them
    int operands = 0;
    int self = 0;  // how many of the others come before the own one
    Bytes bytes = 0;
    DataType type{};
    ReduceOp op{};
    int finish_over = 0;  // avg: what the sum is divided by; 0: not at all
  };
  virtual ~RailAdder() = default;
  /// Begins the plan's sum `which` of the turn in a slot, and does not wait.
  virtual Result<void> start(std::uint32_t slot, std::uint32_t which, const Sum& sum) = 0;
  virtual Result<bool> ended(std::uint32_t slot, std::uint32_t which) = 0;
};

/// One rank's side. Lives as long as its communicator; used by the thread that drives it.
class Rail {
 public:
  static constexpr std::uint32_t kSlots = RailLayout::kSlots;
  struct Setup {
    RailLayout layout{0, 0};
    int self = 0;                        // its host
    std::vector<Rank> ranks;             // by host
    std::vector<Blob> keys;              // by host: of their areas; the own one is not used
    std::unique_ptr<MemoryRegion> area;  // layout.bytes()
    Device* device = nullptr;            // of `area`; outlives the rail, and so does the next
    RailAdder* adder = nullptr;
  };
  explicit Rail(Setup setup);

  /// Messages of rails have these immediates, and no others.
  static bool is_mine(std::uint32_t immediate) noexcept { return immediate >> 14 == 1; }
  int self() const noexcept { return setup_.self; }
  const std::vector<Rank>& ranks() const noexcept { return setup_.ranks; }
  const RailLayout& layout() const noexcept { return setup_.layout; }
  /// Where this rank's part goes, and its sum comes from.
  std::byte* part(std::uint64_t turn) const noexcept {
    return at(setup_.layout.part(slot_of(turn)));
  }
  /// The first of `count` turns, which the caller begins and ends in order; the same on all ranks.
  /// It has slot 0.
  std::uint64_t reserve(std::uint64_t count) noexcept {
    const std::uint64_t first = turns_;
    turns_ += (count + kSlots - 1) / kSlots * kSlots;
    return first;
  }

  struct Call {
    DataType type{};
    ReduceOp op{};
    int finish_over = 0;
    const RailPlan* plan = nullptr;  // for this host, the same on all ranks; outlives its turns
  };
  /// What the adder will be given for a part of `bytes` in a turn.
  RailAdder::Sum sum(std::uint64_t turn, Bytes bytes, const Call& call,
                     const RailPlan::Sum& of) const noexcept;

  /// Before the first turn. `track`: null where nobody watches.
  Result<void> connect(Links& links, trace::Track* track);
  /// part(turn) holds `bytes`, for which the plan has room; what had the slot before has ended, and
  /// its sum was read. No bytes: the turn has ended at once.
  void begin(std::uint64_t turn, Bytes bytes, const Call& call);
  Result<Step> step();
  /// part(turn) holds the sum, and this rank may write it.
  bool ended(std::uint64_t turn) const noexcept {
    return slots_[slot_of(turn)].stage == Stage::ended;
  }

  /// A write of `peer` with an immediate that is_mine() has landed.
  Result<void> arrived(Rank peer, std::uint32_t immediate);
  void on_write_done(std::uint64_t cookie) noexcept;
  /// Messages of all turns; no slices.
  const Counters& counters() const noexcept { return counters_; }
  std::string waiting_for() const;

 private:
  enum class Stage : std::uint8_t {
    ended,    // at first, too
    running,  // the plan
    flushing,
    awaiting_writes,
  };
  enum class Flushing : std::uint8_t { no, started, done };
  /// Where a channel of the plan is, and how far in a sum.
  struct Channel {
    enum class Sum : std::uint8_t { awaiting, flushing, adding };
    std::uint32_t next = 0;
    Sum sum{};
    bool unflushed = false;  // results have come that it may have to send on
  };
  static constexpr int kNobody = -1;
  struct Slot {
    Stage stage{};
    std::uint64_t turn = 0;
    Bytes bytes = 0;
    Call call;
    std::vector<Channel> channels;
    std::uint32_t writes = 0;  // of ours that are not done
    Flushing flushing{};
    int flusher = kNobody;     // the channel for which it is
    std::uint32_t parity = 1;  // of this rank's turns of the slot: the running one's, or the last
    std::array<std::vector<std::vector<bool>>, 2> come;  // by parity and host: not yet looked at
  };
  struct Link {
    Endpoint* endpoint = nullptr;
    RemoteRegionId area{};
  };

  static std::uint32_t slot_of(std::uint64_t turn) noexcept {
    return static_cast<std::uint32_t>(turn % kSlots);
  }
  std::byte* at(Bytes offset) const noexcept { return setup_.area->bytes().data() + offset; }
  std::uint32_t number(const Slot& slot) const noexcept {
    return static_cast<std::uint32_t>(&slot - slots_.data());
  }
  Rank rank(int host) const noexcept { return setup_.ranks[static_cast<std::size_t>(host)]; }
  Result<bool> advance(Slot& slot);
  Result<bool> run(Slot& slot, int channel);
  Result<bool> run(Slot& slot, int channel, const RailPlan::Sum& sum, std::uint32_t which);
  Result<Progress> post(Slot& slot, const RailPlan::Send& send);
  bool has(const Slot& slot, const RailPlan::Arrival& arrival) const noexcept;
  /// The first of them that has not come; null: all have, and are taken.
  const RailPlan::Arrival* take(Slot& slot, std::span<const RailPlan::Arrival> arrivals);
  void waits(Slot& slot, std::string_view what, int host);
  Result<bool> flush(Slot& slot, int channel);
  void enter(Slot& slot, Stage stage) noexcept;
  std::string waiting_for(const Slot& slot, const Channel& channel,
                          const std::vector<RailPlan::Step>& steps) const;
  trace::RowMarks* marks(const Slot& slot) noexcept {
    return marks_.empty() ? nullptr : &marks_[number(slot)];
  }

  Setup setup_;
  std::vector<Link> links_;  // by host; empty before connect()
  std::array<Slot, kSlots> slots_;
  std::uint64_t turns_ = 0;
  std::vector<trace::RowMarks> marks_;  // by slot; empty where nobody watches
  Counters counters_;
};

}  // namespace gdrx::exec
