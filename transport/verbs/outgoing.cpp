// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/outgoing.hpp"

#include <algorithm>
#include <bit>

#include "transport/verbs/region.hpp"

namespace gdrx::verbs {
namespace {

std::uint64_t address_of(const std::byte* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

bool contains(std::span<const std::byte> region, std::span<const std::byte> payload) {
  return payload.empty() || (payload.data() >= region.data() &&
                             payload.data() + payload.size() <= region.data() + region.size());
}

}  // namespace

Path* Outgoing::path_of(Link& link) noexcept {
  const std::span<Path> paths = link.paths();
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Path& path = paths[(path_turn_ + i) % paths.size()];
    if (path.room()) return &path;
  }
  return nullptr;
}

// Small messages rotate over links and QPs on a counter of their own.
Path* Outgoing::choose(Link** link) noexcept {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& candidate = *links_[(link_turn_ + i) % links_.size()];
    if (candidate.state() != LinkState::up) continue;
    if (Path* path = path_of(candidate); path != nullptr) {
      link_turn_ = (link_turn_ + i + 1) % links_.size();
      if (link_turn_ == 0) ++path_turn_;
      *link = &candidate;
      return path;
    }
  }
  return nullptr;
}

Result<Progress> Outgoing::post(const WriteOp& op, const Remote& remote) {
  const Bytes total = op.header.size() + op.payload.size();
  if (op.header.size() > kMaxWriteHeader || op.offset > remote.key.length ||
      total > remote.key.length - op.offset) {
    return fail(Errc::internal, "a write beyond its region");
  }
  if (op.local != nullptr && !contains(op.local->bytes(), op.payload)) {
    return fail(Errc::internal, "a payload that is not in the region it is said to be in");
  }
  Message& fresh = message(next_);
  if (lost_ != 0 || fresh.unacknowledged != 0 || next_ - delivered_ >= kWindow) {
    return Progress::pending;
  }
  Link* link = nullptr;
  Path* path = choose(&link);
  if (path == nullptr) return Progress::pending;
  prepare(op, remote, fresh);
  if (GDRX_TRY(hold_payload(op, fresh)) == Progress::pending) return Progress::pending;
  if (fresh.form != Form::eager) {
    if (!cut(fresh)) return Progress::pending;
    if (op.payload.size() >= kLeastStripe) {  // the striper has found the rail that is free first
      link = links_[fresh.stripes.item[0].rail].get();
      path = path_of(*link);
    }
  }
  write_head(fresh, op.header);
  if (fresh.form == Form::eager) {
    std::byte* body = slot(next_) + sizeof(Head);
    if (!op.header.empty()) std::memcpy(body, op.header.data(), op.header.size());
    if (!fresh.payload.empty()) {
      std::memcpy(body + op.header.size(), fresh.payload.data(), fresh.payload.size());
    }
    core_.finish({CompletionKind::write_done, peer_, 0, op.cookie});  // it is ours from here on
  }
  const unsigned units =
      fresh.form == Form::striped ? static_cast<unsigned>(fresh.stripes.count) + 1 : 1;
  fresh.unacknowledged = static_cast<std::uint16_t>((1U << units) - 1);
  fresh.todo = 0;
  ++next_;
  ++unfinished_;
  ++core_.counters.messages;
  for (unsigned unit = 0; unit < units; ++unit) {
    if (unit > 0) {
      link = links_[fresh.stripes.item[unit - 1].rail].get();
      path = link->state() == LinkState::up ? path_of(*link) : nullptr;
    }
    if (path == nullptr || post_unit(fresh, unit, *link, *path, fresh.form != Form::eager) != 0) {
      fresh.todo = static_cast<std::uint16_t>(fresh.todo | 1U << unit);
      ++lost_;  // resend() finds it a path
    }
  }
  core_.counters.stripes += units;
  return Progress::done;
}

// The payload has to be where our NICs can read it, and for small messages the processor too.
Result<Progress> Outgoing::hold_payload(const WriteOp& op, Message& fresh) {
  if (op.payload.empty()) return Progress::done;
  if (fresh.local != nullptr) {
    const LocalRegion& region = fresh.local->region();
    if (region.path != MemoryPath::staged) return Progress::done;
    std::byte* copy = region.reached.data() + (op.payload.data() - region.bytes.data());
    GDRX_TRY(core_.gpu->to_host(copy, op.payload.data(), op.payload.size()));
    core_.counters.staged += op.payload.size();
    fresh.payload = {copy, op.payload.size()};
    return Progress::done;
  }
  if (fresh.form == Form::eager) return Progress::done;
  if (op.payload.size() > core_.staging.capacity()) {
    return fail(Errc::unsupported,
                "a payload that is not registered and larger than GDRX_VERBS_STAGING: raise it");
  }
  std::byte* place = core_.staging.take(op.payload.size());
  if (place == nullptr) return Progress::pending;
  std::memcpy(place, op.payload.data(), op.payload.size());
  core_.counters.copied += op.payload.size();
  fresh.payload = {place, op.payload.size()};
  fresh.staged = true;
  return Progress::done;
}

void Outgoing::prepare(const WriteOp& op, const Remote& remote, Message& fresh) {
  const auto* local = static_cast<const VerbsRegion*>(op.local);
  // A small message is put together and taken apart by processors, which see no GPU's memory.
  const bool readable = local == nullptr || !local->direct() || op.payload.empty();
  const bool writable = (remote.key.flags & kNoProcessor) == 0 || op.payload.empty();
  const bool small = op.header.size() + op.payload.size() <= kEagerBytes;
  fresh.form = small && readable && writable ? Form::eager : Form::whole;
  fresh.has_immediate = op.has_immediate;
  fresh.staged = false;
  fresh.header_bytes = static_cast<std::uint8_t>(op.header.size());
  fresh.immediate = op.immediate;
  fresh.cookie = op.cookie;
  fresh.offset = op.offset;
  fresh.payload = op.payload;
  fresh.local = local;
  fresh.key = remote.key;
  fresh.stripes = {};
}

// Decides whole or striped. An immediate that does not fit beside the sequence number needs the
// envelope, and so does a receiver that has to copy what landed.
bool Outgoing::cut(Message& fresh) {
  std::array<RailLoad, kMaxRails> loads{};
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = *links_[i];
    if (link.state() != LinkState::up || path_of(link) == nullptr) continue;
    loads[i].weight = std::max(1U, std::min(link.rail().address().speed, link.peer().speed));
    for (const Path& path : link.paths()) loads[i].outstanding += path.outstanding();
  }
  fresh.stripes = stripe(fresh.payload.size(), std::span(loads).first(links_.size()));
  if (fresh.stripes.count == 0) {
    if (fresh.staged) core_.staging.give_back(fresh.payload.data(), fresh.payload.size());
    return false;
  }
  const bool fits =
      (!fresh.has_immediate || fresh.immediate <= 0xffff) && (fresh.key.flags & kCopied) == 0;
  fresh.form = fresh.stripes.count == 1 && fits ? Form::whole : Form::striped;
  return true;
}

void Outgoing::write_head(const Message& fresh, std::span<const std::byte> header) noexcept {
  std::byte* place = slot(next_);
  Head head;
  head.kind = fresh.form == Form::eager ? HeadKind::eager : HeadKind::envelope;
  head.stripes = static_cast<std::uint8_t>(fresh.stripes.count);
  head.has_immediate = fresh.has_immediate ? 1 : 0;
  head.sequence = next_;
  head.region = fresh.key.region;
  head.nonce = fresh.key.nonce;
  head.offset = fresh.offset;
  head.immediate = fresh.immediate;
  head.bytes = static_cast<std::uint32_t>(header.size() +
                                          (fresh.form == Form::eager ? fresh.payload.size() : 0));
  head.payload = fresh.form == Form::eager ? 0 : fresh.payload.size();
  std::memcpy(place, &head, sizeof head);
  if (!header.empty()) std::memcpy(place + sizeof head, header.data(), header.size());
}

std::uint32_t Outgoing::payload_lkey(const Message& of, const Link& link) const noexcept {
  return of.staged ? core_.staging.lkey(link.rail_index()) : of.local->lkey(link.rail_index());
}

int Outgoing::post_unit(Message& of, unsigned unit, Link& link, Path& path, bool soon) noexcept {
  const auto sequence =
      oldest_ + ((static_cast<std::uint64_t>(&of - ring_.data()) - oldest_) % kWindow);
  std::byte* place = slot(sequence);
  std::array<ibv_sge, 2> pieces{};
  ibv_send_wr request{};
  request.sg_list = pieces.data();
  const auto add = [&](const std::byte* memory, Bytes bytes, std::uint32_t lkey) {
    pieces[static_cast<std::size_t>(request.num_sge++)] = {address_of(memory),
                                                           static_cast<std::uint32_t>(bytes), lkey};
  };
  Bytes bytes = 0;
  const std::uint32_t slot_lkey = place_.lkeys[link.rail_index()];
  if (unit == 0 && of.form != Form::whole) {
    bytes = sizeof(Head) + of.header_bytes + (of.form == Form::eager ? of.payload.size() : 0);
    request.opcode = IBV_WR_SEND;
    add(place, bytes, slot_lkey);
    if (bytes <= path.inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
  } else {
    const bool whole = of.form == Form::whole;
    const Stripe& part = of.stripes.item[whole ? 0 : unit - 1];
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    Signal signal{SignalKind::stripe, sequence, static_cast<std::uint16_t>(unit - 1)};
    Bytes lands = of.offset + of.header_bytes + part.offset;
    if (whole) {
      signal.kind = of.has_immediate ? SignalKind::whole_immediate : SignalKind::whole;
      signal.low = static_cast<std::uint16_t>(of.immediate);
      lands = of.offset;
      if (of.header_bytes > 0) add(place + sizeof(Head), of.header_bytes, slot_lkey);
      bytes = of.header_bytes;
    }
    request.imm_data = htobe32(encode(signal));
    bytes += part.bytes;
    if (part.bytes > 0) {
      add(of.payload.data() + part.offset, part.bytes, payload_lkey(of, link));
    }
    request.wr.rdma.remote_addr = of.key.base + lands;
    request.wr.rdma.rkey = of.key.rkey[link.number() % of.key.rails];
  }
  // Between two ends of a fabric that reroutes packets a write with immediate has to come in order;
  // plain writes need not. So the bytes go by one, and an empty write with immediate follows.
  if (request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM && link.rail().adaptive() &&
      bytes > core_.options.adaptive_threshold) {
    request.opcode = IBV_WR_RDMA_WRITE;
    if (const int error = path.post_part(request); error != 0) {
      link.fail(fmt::format("ibv_post_send: {}", std::strerror(error)), core_.clock->now());
      return error;
    }
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.num_sge = 0;
  }
  const int error = path.post(request, {sequence, bytes, static_cast<std::uint8_t>(unit)}, soon);
  if (error != 0)
    link.fail(fmt::format("ibv_post_send: {}", std::strerror(error)), core_.clock->now());
  return error;
}

void Outgoing::acknowledged(const Unit& unit) noexcept {
  Message& of = message(unit.sequence);
  of.unacknowledged = static_cast<std::uint16_t>(of.unacknowledged & ~(1U << unit.index));
  if (of.unacknowledged != 0) return;
  --unfinished_;
  if (of.staged) core_.staging.give_back(of.payload.data(), of.payload.size());
  if (of.form != Form::eager) {
    core_.finish({CompletionKind::write_done, peer_, 0, of.cookie});
  }
  while (oldest_ != next_ && message(oldest_).unacknowledged == 0) ++oldest_;
}

void Outgoing::lost(const Unit& unit) noexcept {
  Message& of = message(unit.sequence);
  of.todo = static_cast<std::uint16_t>(of.todo | 1U << unit.index);
  ++lost_;
  ++core_.counters.resent;
}

void Outgoing::peer_delivered(std::uint64_t messages) noexcept {
  // A peer that claims what was never sent gains nothing by it.
  if (messages <= next_) delivered_ = std::max(delivered_, messages);
}

std::string Outgoing::state() const {
  return fmt::format("{} posted, {} unfinished, {} units to resend, oldest {}, {} delivered there",
                     next_, unfinished_, lost_, oldest_, delivered_);
}

void Outgoing::resend() noexcept {
  for (std::uint64_t sequence = oldest_; lost_ != 0 && sequence != next_; ++sequence) {
    Message& of = message(sequence);
    while (of.todo != 0) {
      Link* link = nullptr;
      Path* path = choose(&link);
      if (path == nullptr) return;
      const auto unit = static_cast<unsigned>(std::countr_zero(of.todo));
      if (post_unit(of, unit, *link, *path, true) != 0) continue;
      of.todo = static_cast<std::uint16_t>(of.todo & ~(1U << unit));
      --lost_;
    }
  }
}

}  // namespace gdrx::verbs
