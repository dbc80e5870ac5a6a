// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/rail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gdrx::exec {
namespace {

constexpr std::uint32_t kSumBit = 1 << 8;
constexpr std::uint32_t kSlotMask = 0xff;
constexpr std::uint64_t kFlushBit = 1 << 8;  // of cookies

}  // namespace

Rail::Rail(Setup setup) : setup_(std::move(setup)) {
  for (Slot& slot : slots_) {
    for (std::vector<bool>& come : slot.come) come.assign(setup_.ranks.size(), false);
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
  if (bytes == 0) return;
  enter(slot, Stage::sending_shares);
  if (auto* row = marks(slot)) row->begin_chunk("chunk", turn, bytes);
}

void Rail::enter(Slot& slot, Stage stage) noexcept {
  slot.stage = stage;
  slot.next = 1;
  slot.flushing = Flushing::no;
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
  const bool adds = share(slot, setup_.self).bytes > 0;
  const bool all_own = share(slot, setup_.self).bytes == slot.bytes;
  switch (slot.stage) {
    case Stage::sending_shares:
      if (!GDRX_TRY(send(slot, Message::share))) return false;
      enter(slot, adds ? Stage::awaiting_shares : Stage::awaiting_sums);
      return true;
    case Stage::awaiting_shares:
      if (!take(slot, Message::share)) return false;
      enter(slot, Stage::flushing_shares);
      return true;
    case Stage::flushing_shares:
      if (!GDRX_TRY(flush(slot))) return false;
      GDRX_TRY(add(slot));
      enter(slot, Stage::adding);
      return true;
    case Stage::adding:
      if (!GDRX_TRY(setup_.adder->ended(number(slot)))) return false;
      enter(slot, Stage::sending_sums);
      return true;
    case Stage::sending_sums:
      if (!GDRX_TRY(send(slot, Message::sum))) return false;
      enter(slot, Stage::awaiting_sums);
      return true;
    case Stage::awaiting_sums:
      if (!take(slot, Message::sum)) return false;
      // Where all is this host's share, nothing came.
      enter(slot, all_own ? Stage::awaiting_writes : Stage::flushing_sums);
      return true;
    case Stage::flushing_sums:
      if (!GDRX_TRY(flush(slot))) return false;
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

// To the hosts after this one first, so that not all begin with the same.
Result<bool> Rail::send(Slot& slot, Message message) {
  const int hosts = setup_.layout.hosts();
  for (; slot.next < hosts; ++slot.next) {
    const int host = (setup_.self + slot.next) % hosts;
    if (message == Message::share && share(slot, host).bytes == 0) continue;
    if (GDRX_TRY(post(slot, message, host)) == Progress::pending) {
      if (auto* row = marks(slot)) {
        row->waits("wait for room at", index(setup_.ranks[static_cast<std::size_t>(host)]),
                   slot.bytes);
      }
      return false;
    }
  }
  return true;
}

Result<Progress> Rail::post(Slot& slot, Message message, int host) {
  const RailLayout& layout = setup_.layout;
  const std::uint32_t at_slot = number(slot);
  const bool sum = message == Message::sum;
  const RailLayout::Share what = share(slot, sum ? setup_.self : host);
  const Link& link = links_[static_cast<std::size_t>(host)];
  WriteOp op;
  op.payload = {at(layout.part(at_slot) + what.begin), what.bytes};
  op.local = setup_.area.get();
  op.remote = link.area;
  op.offset = sum ? layout.part(at_slot) + what.begin : layout.landing(at_slot, host, setup_.self);
  op.has_immediate = true;
  op.immediate = kFlag | (sum ? kSumBit : 0) | at_slot;
  op.cookie = at_slot;
  const Progress posted = GDRX_TRY(link.endpoint->post(op));
  if (posted == Progress::pending) return posted;
  ++slot.writes;
  ++counters_.sent;
  if (auto* row = marks(slot)) {
    row->goes_on();
    row->step("send to", {what.bytes,
                          index(setup_.ranks[static_cast<std::size_t>(host)]),
                          static_cast<std::uint32_t>(host),
                          {}});
  }
  return posted;
}

int Rail::missing(const Slot& slot, Message message) const noexcept {
  const std::vector<bool>& come = slot.come[static_cast<std::size_t>(message)];
  for (int host = 0; host < setup_.layout.hosts(); ++host) {
    if (host == setup_.self || come[static_cast<std::size_t>(host)]) continue;
    if (message == Message::sum && share(slot, host).bytes == 0) continue;
    return host;
  }
  return -1;
}

bool Rail::take(Slot& slot, Message message) {
  if (const int host = missing(slot, message); host >= 0) {
    if (auto* row = marks(slot)) {
      row->waits("wait for", index(setup_.ranks[static_cast<std::size_t>(host)]), slot.bytes);
    }
    return false;
  }
  std::vector<bool>& come = slot.come[static_cast<std::size_t>(message)];
  counters_.received += static_cast<std::uint64_t>(std::count(come.begin(), come.end(), true));
  std::fill(come.begin(), come.end(), false);
  return true;
}

// A processor that was told of a write may not start a kernel on it before the write is visible to
// the GPU.
Result<bool> Rail::flush(Slot& slot) {
  if (slot.flushing == Flushing::done) return true;
  if (slot.flushing == Flushing::started) return false;
  switch (GDRX_TRY(setup_.device->flush(*setup_.area, number(slot) | kFlushBit))) {
    case Flush::not_needed:
      return true;
    case Flush::started:
      slot.flushing = Flushing::started;
      return false;
    case Flush::pending:
      return false;
  }
  return false;
}

RailAdder::Sum Rail::sum(std::uint64_t turn, Bytes bytes, const Call& call) const noexcept {
  const RailLayout& layout = setup_.layout;
  const std::uint32_t at_slot = slot_of(turn);
  const RailLayout::Share own = layout.share(bytes, setup_.self);
  RailAdder::Sum sum;
  sum.own = sum.into = at(layout.part(at_slot) + own.begin);
  sum.landed = at(layout.landing(at_slot, setup_.self, setup_.self == 0 ? 1 : 0));
  sum.stride = layout.landing_stride();
  sum.hosts = layout.hosts();
  sum.self = setup_.self;
  sum.bytes = own.bytes;
  sum.type = call.type;
  sum.op = call.op;
  sum.finish_over = call.finish_over;
  return sum;
}

Result<void> Rail::add(Slot& slot) {
  const RailAdder::Sum sum = this->sum(slot.turn, slot.bytes, slot.call);
  if (auto* row = marks(slot)) {
    row->step("reduce", {sum.bytes, trace::kNobody, static_cast<std::uint32_t>(setup_.self), {}});
  }
  return setup_.adder->start(number(slot), sum);
}

Result<void> Rail::arrived(Rank peer, std::uint32_t immediate) {
  const auto found = std::find(setup_.ranks.begin(), setup_.ranks.end(), peer);
  const auto host = static_cast<std::size_t>(found - setup_.ranks.begin());
  const std::uint32_t at_slot = immediate & kSlotMask;
  if (found == setup_.ranks.end() || static_cast<int>(host) == setup_.self || at_slot >= kSlots) {
    return fail(Errc::protocol,
                fmt::format("rank {} announced GPU memory in slot {} of a rail "
                            "that has no such {}",
                            index(peer), at_slot, at_slot >= kSlots ? "slot" : "rank"));
  }
  const bool sum = (immediate & kSumBit) != 0;
  auto come = slots_[at_slot].come[sum ? 1 : 0].begin() + static_cast<std::ptrdiff_t>(host);
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
  const auto rank = [&](int host) {
    return host < 0 ? std::string("nobody any more")
                    : fmt::format("rank {}", index(setup_.ranks[static_cast<std::size_t>(host)]));
  };
  switch (oldest->stage) {
    case Stage::sending_shares:
    case Stage::sending_sums:
      return fmt::format("{} to take a message",
                         rank((setup_.self + oldest->next) % setup_.layout.hosts()));
    case Stage::awaiting_shares:
      return fmt::format("the share of {}", rank(missing(*oldest, Message::share)));
    case Stage::awaiting_sums:
      return fmt::format("the sum of {}", rank(missing(*oldest, Message::sum)));
    case Stage::flushing_shares:
    case Stage::flushing_sums:
      return "the NICs to push what they wrote into the GPU";
    case Stage::adding:
      return "the GPU to add";
    case Stage::awaiting_writes:
    case Stage::ended:
      break;
  }
  return "this rank's own writes to complete";
}

}  // namespace gdrx::exec
