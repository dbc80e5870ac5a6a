// SPDX-License-Identifier: Apache-2.0
// The sum of one rank's memory on each of several hosts, NICs reading and writing that memory
// itself. Knows of GPUs only that somebody else adds for it.
//
// A part of the vector takes a turn, and turn t the slot t % kSlots of every rank's area (some
// turns are left out; t - kSlots below is the last before t that was not):
//
//   1. share h of the part goes from every rank into host h's landing, with an immediate;
//   2. host h waits for the hosts' shares, flushes, has them added in the order of hosts over its
//      own;
//   3. the sum goes from host h over every rank's share h, with an immediate;
//   4. whoever has all sums flushes, and waits until its own writes have been read.
//
// Nobody writes what has not been read, without a credit being sent, as long as begin(t) comes
// after whatever has read or written the slot in turn t - kSlots:
//   landing: a rank writes its share of turn t after it has ended turn t - kSlots, so with the sum
//     of its share of that turn in its hands: host h had added it up, and read its landing.
//   share h of a part: host h writes its sum of turn t after the rank's share of turn t has come,
//     which the rank sent after begin(t). So what the share held was read before, of this turn by
//     the rank's NIC: what it might send again, its answer lost, host h's drops.
//   the own share: a turn ends when all writes that read it are done.
// So at most one share and one sum of a host are on their way into a slot, and a bit for each is
// enough; it may be set before this rank has begun the turn.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/exec/execution.hpp"
#include "collectives/exec/outbox.hpp"
#include "collectives/exec/rail_layout.hpp"
#include "collectives/trace/span.hpp"
#include "gdrx/transport.hpp"

namespace gdrx::exec {

/// Adds memory of a rail's area where it lies.
class RailAdder {
 public:
  struct Sum {
    const std::byte* own = nullptr;     // the operand of host `self`
    const std::byte* landed = nullptr;  // those of the others, in the order of hosts
    Bytes stride = 0;                   // between two of them
    int hosts = 0;
    int self = 0;
    std::byte* into = nullptr;
    Bytes bytes = 0;
    DataType type{};
    ReduceOp op{};
    int finish_over = 0;  // avg: what the sum is divided by; 0: not at all
  };
  virtual ~RailAdder() = default;
  /// Begins to add, and does not wait. One at a time a slot.
  virtual Result<void> start(std::uint32_t slot, const Sum& sum) = 0;
  virtual Result<bool> ended(std::uint32_t slot) = 0;
};

/// One rank's side. Lives as long as its communicator; used by the thread that drives it.
class Rail {
 public:
  static constexpr std::uint32_t kSlots = RailLayout::kSlots;
  struct Setup {
    RailLayout layout{1, 0};
    int self = 0;                        // its host
    std::vector<Rank> ranks;             // by host
    std::vector<Blob> keys;              // by host: of their areas; the own one is not used
    std::unique_ptr<MemoryRegion> area;  // layout.bytes()
    Device* device = nullptr;            // of `area`; outlives the rail, and so does the next
    RailAdder* adder = nullptr;
  };
  explicit Rail(Setup setup);

  /// Messages of rails have these immediates, and no others.
  static bool is_mine(std::uint32_t immediate) noexcept {
    return (immediate & ~std::uint32_t{0x1ff}) == kFlag;
  }
  const RailLayout& layout() const noexcept { return setup_.layout; }
  int self() const noexcept { return setup_.self; }
  const std::vector<Rank>& ranks() const noexcept { return setup_.ranks; }
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
  };
  /// What the adder will be given for this rank's share of a part of `bytes` in a turn.
  RailAdder::Sum sum(std::uint64_t turn, Bytes bytes, const Call& call) const noexcept;

  /// Before the first turn. `track`: null where nobody watches.
  Result<void> connect(Links& links, trace::Track* track);
  /// part(turn) holds `bytes`; what had the slot before has ended, and its sum was read. No bytes:
  /// the turn has ended at once.
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
  static constexpr std::uint32_t kFlag = 1 << 14;  // beyond every lane of an inbox
  enum class Message : std::uint8_t { share, sum };
  enum class Stage : std::uint8_t {
    ended,  // at first, too
    sending_shares,
    awaiting_shares,
    flushing_shares,
    adding,
    sending_sums,
    awaiting_sums,
    flushing_sums,
    awaiting_writes,
  };
  enum class Flushing : std::uint8_t { no, started, done };
  struct Slot {
    Stage stage{};
    std::uint64_t turn = 0;
    Bytes bytes = 0;
    Call call;
    int next = 1;              // host, counted from this one, that is sent to next
    std::uint32_t writes = 0;  // of ours that are not done
    Flushing flushing{};
    std::array<std::vector<bool>, 2> come;  // by Message and host: not yet looked at
  };
  struct Link {
    Endpoint* endpoint = nullptr;
    RemoteRegionId area{};
  };

  static std::uint32_t slot_of(std::uint64_t turn) noexcept {
    return static_cast<std::uint32_t>(turn % kSlots);
  }
  std::byte* at(Bytes offset) const noexcept { return setup_.area->bytes().data() + offset; }
  RailLayout::Share share(const Slot& slot, int host) const noexcept {
    return setup_.layout.share(slot.bytes, host);
  }
  std::uint32_t number(const Slot& slot) const noexcept {
    return static_cast<std::uint32_t>(&slot - slots_.data());
  }
  Result<bool> advance(Slot& slot);
  Result<bool> send(Slot& slot, Message message);
  Result<Progress> post(Slot& slot, Message message, int host);
  int missing(const Slot& slot, Message message) const noexcept;  // a host, or -1
  bool take(Slot& slot, Message message);
  Result<bool> flush(Slot& slot);
  Result<void> add(Slot& slot);
  void enter(Slot& slot, Stage stage) noexcept;
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
