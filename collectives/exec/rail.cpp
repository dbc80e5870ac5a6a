// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/rail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gdrx::exec {
namespace {

// An immediate: kFlag, then the turn's parity, the slot, the message's number.
constexpr std::uint32_t kFlag = 1 << 14;  // beyond every lane of an receive_ring
constexpr int kParityBit = 13;
constexpr int kSlotBit = 11;
constexpr std::uint32_t kNumberMask = (1 << kSlotBit) - 1;
static_assert(2 * RailPlan::kMostHosts <= kNumberMask);
constexpr std::uint64_t kFlushBit = 1 << 8;  // of cookies
constexpr int kEnd = -2;                     // flusher: the turn itself

// A ring has most of them.
std::uint32_t most_messages(std::size_t hosts) {
  return std::max<std::uint32_t>(8, 2 * static_cast<std::uint32_t>(hosts));
}

}  // namespace

Rail::Rail(Setup setup) : setup_(std::move(setup)) {
  const std::size_t hosts = setup_.ranks.size();
  for (Slot& slot : slots_) {
    for (auto& come : slot.come) {
      come.assign(hosts, std::vector<bool>(most_messages(hosts), false));
    }
  }
}

Result<void> Rail::connect(Links& links, trace::Track* track) {
  if (!links_.empty()) return {};
  std::vector<Link> made(setup_.ranks.size());
  for (std::size_t host = 0; host < made.size(); ++host) {
    if (static_cast<int>(host) == setup_.self) continue;
    made[host].endpoint = &GDRX_TRY(links.to(setup_.ranks[host]))->endpoint();
    made[host].area = GDRX_TRY(made[host].endpoint->import_region(setup_.keys[host]));
  }
  links_ = std::move(made);
  for (std::uint32_t slot = 0; track != nullptr && slot < kSlots; ++slot) {
    marks_.emplace_back(*track, trace::lane_row(slot));
  }
  return {};
}

void Rail::begin(std::uint64_t turn, Bytes bytes, const Call& call) {
  Slot& slot = slots_[slot_of(turn)];
  slot.turn = turn;
  slot.bytes = bytes;
  slot.call = call;
  slot.parity ^= 1;
  if (bytes == 0) return;
  slot.channels.assign(call.plan->channels.size(), {});
  enter(slot, Stage::running);
  if (auto* row = marks(slot)) row->begin_chunk("chunk", turn, bytes);
}

void Rail::enter(Slot& slot, Stage stage) noexcept {
  slot.stage = stage;
  auto* row = marks(slot);
  if (row == nullptr) return;
  row->goes_on();
  if (stage == Stage::ended) row->end_chunk();
}

Result<Step> Rail::step() {
  bool advanced = false;
  bool all = true;
  for (Slot& slot : slots_) {
    while (slot.stage != Stage::ended) {
      if (!GDRX_TRY(advance(slot))) break;
      advanced = true;
    }
    all = all && slot.stage == Stage::ended;
  }
  if (all) return Step::done;
  return advanced ? Step::advanced : Step::idle;
}

Result<bool> Rail::advance(Slot& slot) {
  switch (slot.stage) {
    case Stage::running: {
      const auto& channels = slot.call.plan->channels;
      bool advanced = false;
      bool all = true;
      for (std::size_t channel = 0; channel < channels.size(); ++channel) {
        advanced = GDRX_TRY(run(slot, static_cast<int>(channel))) || advanced;
        all = all && slot.channels[channel].next == channels[channel].size();
      }
      if (all) enter(slot, Stage::flushing);
      return advanced || all;
    }
    case Stage::flushing:
      if (!GDRX_TRY(flush(slot, kEnd))) return false;
      enter(slot, Stage::awaiting_writes);
      return true;
    case Stage::awaiting_writes:
      if (slot.writes > 0) return false;
      enter(slot, Stage::ended);
      return true;
    case Stage::ended:
      break;
  }
  return false;
}

// As far as it goes.
Result<bool> Rail::run(Slot& slot, int channel) {
  const RailPlan& plan = *slot.call.plan;
  const auto at = static_cast<std::size_t>(channel);
  const auto bytes_of = [&](RailPlan::Chunks of) { return plan.share(slot.bytes, of).bytes; };
  bool advanced = false;
  for (auto& next = slot.channels[at].next; next < plan.channels[at].size(); ++next) {
    const RailPlan::Step& step = plan.channels[at][next];
    switch (step.kind) {
      case RailPlan::Step::Kind::send: {
        const RailPlan::Send& send = plan.sends[step.at];
        if (slot.channels[at].unflushed && !GDRX_TRY(flush(slot, channel))) return advanced;
        slot.channels[at].unflushed = false;
        if (bytes_of(send.chunks) > 0 && GDRX_TRY(post(slot, send)) == Progress::pending) {
          waits(slot, "wait for room at", send.host);
          return advanced;
        }
        break;
      }
      case RailPlan::Step::Kind::arrival: {
        const RailPlan::Arrival& arrival = plan.arrivals[step.at];
        if (bytes_of(arrival.chunks) > 0 && take(slot, {&arrival, 1}) != nullptr) {
          waits(slot, "wait for", arrival.host);
          return advanced;
        }
        slot.channels[at].unflushed = true;
        break;
      }
      case RailPlan::Step::Kind::sum: {
        const RailPlan::Sum& sum = plan.sums[step.at];
        if (bytes_of(sum.chunks) > 0 && !GDRX_TRY(run(slot, channel, sum, step.at))) {
          return advanced;
        }
        break;
      }
    }
    advanced = true;
    if (auto* row = marks(slot)) row->goes_on();
  }
  return advanced;
}

// True: the GPU has added.
Result<bool> Rail::run(Slot& slot, int channel, const RailPlan::Sum& sum, std::uint32_t which) {
  auto& stage = slot.channels[static_cast<std::size_t>(channel)].sum;
  if (stage == Channel::Sum::awaiting) {
    if (const RailPlan::Arrival* missing = take(slot, sum.arrivals)) {
      waits(slot, "wait for", missing->host);
      return false;
    }
    stage = Channel::Sum::flushing;
  }
  if (stage == Channel::Sum::flushing) {
    if (!GDRX_TRY(flush(slot, channel))) return false;
    const RailAdder::Sum what = this->sum(slot.turn, slot.bytes, slot.call, sum);
    if (auto* row = marks(slot)) {
      row->step("reduce", {what.bytes, trace::kNobody, sum.chunks.first, {}});
    }
    GDRX_TRY(setup_.adder->start(number(slot), which, what));
    stage = Channel::Sum::adding;
  }
  if (!GDRX_TRY(setup_.adder->ended(number(slot), which))) return false;
  stage = Channel::Sum::awaiting;
  return true;
}

Result<Progress> Rail::post(Slot& slot, const RailPlan::Send& send) {
  const RailPlan& plan = *slot.call.plan;
  const RailLayout& layout = setup_.layout;
  const std::uint32_t at_slot = number(slot);
  const RailPlan::Share what = plan.share(slot.bytes, send.chunks);
  const Link& link = links_[static_cast<std::size_t>(send.host)];
  WriteOp op;
  op.payload = {at(layout.part(at_slot) + what.begin), what.bytes};
  op.local = setup_.area.get();
  op.remote = link.area;
  op.offset = send.landing ? layout.landing(at_slot) + *send.landing * plan.chunk(slot.bytes)
                           : layout.part(at_slot) + what.begin;
  op.has_immediate = true;
  op.immediate = kFlag | slot.parity << kParityBit | at_slot << kSlotBit | send.number;
  op.cookie = at_slot;
  const Progress posted = GDRX_TRY(link.endpoint->post(op));
  if (posted == Progress::pending) return posted;
  ++slot.writes;
  ++counters_.sent;
  if (auto* row = marks(slot)) {
    row->goes_on();
    row->step("send to", {what.bytes, index(rank(send.host)), send.number, {}});
  }
  return posted;
}

bool Rail::has(const Slot& slot, const RailPlan::Arrival& arrival) const noexcept {
  return slot.come[slot.parity][static_cast<std::size_t>(arrival.host)][arrival.number];
}

const RailPlan::Arrival* Rail::take(Slot& slot, std::span<const RailPlan::Arrival> arrivals) {
  for (const RailPlan::Arrival& arrival : arrivals) {
    if (!has(slot, arrival)) return &arrival;
  }
  for (const RailPlan::Arrival& arrival : arrivals) {
    slot.come[slot.parity][static_cast<std::size_t>(arrival.host)][arrival.number] = false;
  }
  counters_.received += arrivals.size();
  return nullptr;
}

void Rail::waits(Slot& slot, std::string_view what, int host) {
  if (auto* row = marks(slot)) row->waits(what, index(rank(host)), slot.bytes);
}

// A processor that was told of a write may not let a kernel read it, start one or tell one that
// waits, before the write is visible to the GPU. One at a time: a flush under way may have begun
// before the write of another channel.
Result<bool> Rail::flush(Slot& slot, int channel) {
  if (slot.flusher != kNobody && slot.flusher != channel) return false;
  slot.flusher = channel;
  if (slot.flushing == Flushing::started) return false;
  if (slot.flushing == Flushing::no) {
    const Flush flush = GDRX_TRY(setup_.device->flush(*setup_.area, number(slot) | kFlushBit));
    if (flush == Flush::started) slot.flushing = Flushing::started;
    if (flush != Flush::not_needed) return false;
  }
  slot.flushing = Flushing::no;
  slot.flusher = kNobody;
  return true;
}

RailAdder::Sum Rail::sum(std::uint64_t turn, Bytes bytes, const Call& call,
                         const RailPlan::Sum& of) const noexcept {
  const RailLayout& layout = setup_.layout;
  const std::uint32_t at_slot = slot_of(turn);
  const Bytes chunk = call.plan->chunk(bytes);
  const RailPlan::Share share = call.plan->share(bytes, of.chunks);
  RailAdder::Sum sum;
  sum.own = at(layout.part(at_slot) + share.begin);
  sum.landed = at(layout.landing(at_slot) + of.landing * chunk);
  sum.stride = of.chunks.count * chunk;
  sum.operands = static_cast<int>(of.arrivals.size()) + 1;
  sum.self = of.self;
  sum.bytes = share.bytes;
  sum.type = call.type;
  sum.op = call.op;
  sum.finish_over = of.finish ? call.finish_over : 0;
  return sum;
}

Result<void> Rail::arrived(Rank peer, std::uint32_t immediate) {
  const auto found = std::find(setup_.ranks.begin(), setup_.ranks.end(), peer);
  const auto host = static_cast<std::size_t>(found - setup_.ranks.begin());
  const std::uint32_t at_slot = immediate >> kSlotBit & 3;
  const std::uint32_t number = immediate & kNumberMask;
  const bool known = found != setup_.ranks.end() && static_cast<int>(host) != setup_.self;
  if (!known || at_slot >= kSlots || number >= most_messages(setup_.ranks.size())) {
    return fail(Errc::protocol,
                fmt::format("rank {} announced message {} in slot {} of a rail that has no such {}",
                            index(peer), number, at_slot,
                            !known              ? "rank"
                            : at_slot >= kSlots ? "slot"
                                                : "message"));
  }
  auto come = slots_[at_slot].come[immediate >> kParityBit & 1][host].begin() + number;
  if (*come) {
    return fail(Errc::protocol,
                fmt::format("rank {} wrote GPU memory in slot {} of its rail before "
                            "that was read",
                            index(peer), at_slot));
  }
  *come = true;
  return {};
}

void Rail::on_write_done(std::uint64_t cookie) noexcept {
  const std::uint64_t at_slot = cookie & ~kFlushBit;
  if (at_slot >= kSlots) return;
  Slot& slot = slots_[at_slot];
  if ((cookie & kFlushBit) != 0) {
    slot.flushing = Flushing::done;
  } else {
    --slot.writes;
  }
}

std::string Rail::waiting_for() const {
  const Slot* oldest = nullptr;
  for (const Slot& slot : slots_) {
    if (slot.stage == Stage::ended) continue;
    if (oldest == nullptr || slot.turn < oldest->turn) oldest = &slot;
  }
  if (oldest == nullptr) return "nobody";
  if (oldest->stage == Stage::awaiting_writes) return "this rank's own writes to complete";
  for (std::size_t channel = 0; channel < oldest->channels.size(); ++channel) {
    const auto& steps = oldest->call.plan->channels[channel];
    if (oldest->channels[channel].next < steps.size()) {
      return waiting_for(*oldest, oldest->channels[channel], steps);
    }
  }
  return "the NICs to push what they wrote into the GPU";
}

std::string Rail::waiting_for(const Slot& slot, const Channel& channel,
                              const std::vector<RailPlan::Step>& steps) const {
  const RailPlan& plan = *slot.call.plan;
  const auto message = [&](const RailPlan::Arrival& arrival) {
    return fmt::format("message {} of rank {}", arrival.number, index(rank(arrival.host)));
  };
  const RailPlan::Step& step = steps[channel.next];
  switch (step.kind) {
    case RailPlan::Step::Kind::send:
      return fmt::format("rank {} to take a message", index(rank(plan.sends[step.at].host)));
    case RailPlan::Step::Kind::arrival:
      return message(plan.arrivals[step.at]);
    case RailPlan::Step::Kind::sum:
      break;
  }
  if (channel.sum == Channel::Sum::adding) return "the GPU to add";
  for (const RailPlan::Arrival& arrival : plan.sums[step.at].arrivals) {
    if (channel.sum == Channel::Sum::awaiting && !has(slot, arrival)) return message(arrival);
  }
  return "the NICs to push what they wrote into the GPU";
}

}  // namespace gdrx::exec
