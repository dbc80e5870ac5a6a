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

ibv_sge piece_of(const std::byte* memory, Bytes bytes, std::uint32_t lkey) {
  return {address_of(memory), static_cast<std::uint32_t>(bytes), lkey};
}

bool contains(std::span<const std::byte> region, std::span<const std::byte> payload) {
  return payload.empty() || (payload.data() >= region.data() &&
                             payload.data() + payload.size() <= region.data() + region.size());
}

// Behind the head of an eager message, whose caller may have its buffer back.
void write_body(std::byte* body, std::span<const std::byte> header,
                std::span<const std::byte> payload) {
  if (!header.empty()) std::memcpy(body, header.data(), header.size());
  if (!payload.empty()) std::memcpy(body + header.size(), payload.data(), payload.size());
}

}  // namespace

QpChannel* Outgoing::channel_of(PortPair& pair, Bytes bytes) noexcept {
  const std::span<QpChannel> channels = pair.channels();
  const std::uint32_t requests = pair.rail().requests_for(bytes);
  for (std::size_t i = 0; i < channels.size(); ++i) {
    QpChannel& channel = channels[(channel_turn_ + i) % channels.size()];
    if (channel.room(requests)) return &channel;
  }
  return nullptr;
}

// Small messages rotate over port pairs and QPs on a counter of their own.
QpChannel* Outgoing::choose(PortPair** pair, Bytes bytes) noexcept {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    PortPair& candidate = *pairs_[(pair_turn_ + i) % pairs_.size()];
    if (candidate.state() != PairState::up) continue;
    if (QpChannel* channel = channel_of(candidate, bytes); channel != nullptr) {
      pair_turn_ = (pair_turn_ + i + 1) % pairs_.size();
      if (pair_turn_ == 0) ++channel_turn_;
      *pair = &candidate;
      return channel;
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
  PortPair* pair = nullptr;
  QpChannel* channel = choose(&pair);
  if (channel == nullptr) return Progress::pending;
  prepare(op, remote, fresh);
  if (GDRX_TRY(hold_payload(op, fresh)) == Progress::pending) return Progress::pending;
  if (fresh.form != Form::eager) {
    auto cut_up = cut(fresh);
    if (!cut_up || *cut_up == Progress::pending) {
      if (fresh.staged) core_.staging.give_back(fresh.payload.data(), fresh.payload.size());
      return cut_up;
    }
    // The striper has found the rail that is free first, or the nearest one.
    if (op.payload.size() >= kLeastStripe || (fresh.far | fresh.key.far) != 0) {
      pair = pairs_[fresh.stripes.item[0].rail].get();
      channel = channel_of(*pair, bytes_of(fresh, 0));
    }
  }
  write_head(fresh, op.header);
  if (fresh.form == Form::eager) {
    write_body(slot(next_) + sizeof(Head), op.header, fresh.payload);
    core_.finish({CompletionKind::write_done, peer_, 0, op.cookie});  // it is ours from here on
  }
  const unsigned fragments =
      fresh.form == Form::striped ? static_cast<unsigned>(fresh.stripes.count) + 1 : 1;
  fresh.unacknowledged = static_cast<std::uint16_t>((1U << fragments) - 1);
  fresh.todo = 0;
  fresh.losses = {};
  ++next_;
  ++unfinished_;
  ++core_.counters.messages;
  for (unsigned fragment = 0; fragment < fragments; ++fragment) {
    if (fragment > 0) {
      pair = pairs_[fresh.stripes.item[fragment - 1].rail].get();
      channel =
          pair->state() == PairState::up ? channel_of(*pair, bytes_of(fresh, fragment)) : nullptr;
    }
    if (channel == nullptr) {
      fresh.todo = static_cast<std::uint16_t>(fresh.todo | 1U << fragment);
      ++lost_;  // resend() finds it a QP channel
    } else {
      post_fragment(fresh, fragment, *pair, *channel, fresh.form != Form::eager);
    }
  }
  core_.counters.stripes += fragments;
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
  for (std::size_t i = 0; local != nullptr && i < core_.rails.size(); ++i) {
    fresh.lkeys[i] = local->lkey(i);
  }
  fresh.key = remote.key;
  fresh.far = local == nullptr ? std::uint16_t{0} : local->region().far;
  fresh.stripes = {};
}

// Decides whole or striped. An immediate that does not fit beside the sequence number needs the
// envelope, and so does a receiver that has to copy what landed.
Result<Progress> Outgoing::cut(Message& fresh) {
  std::array<RailLoad, kMaxRails> loads{};
  const bool differ = (fresh.far | fresh.key.far) != 0;
  const bool near = differ && std::any_of(pairs_.begin(), pairs_.end(), [&](const auto& pair) {
                      return pair->state() == PairState::up && !far_away(fresh, *pair);
                    });
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    PortPair& pair = *pairs_[i];
    if (pair.state() != PairState::up || channel_of(pair) == nullptr) continue;
    if (near && far_away(fresh, pair)) continue;
    loads[i].weight = std::max(1U, std::min(pair.rail().address().speed, pair.peer().speed));
    for (const QpChannel& channel : pair.channels()) loads[i].outstanding += channel.outstanding();
  }
  fresh.stripes = stripe(fresh.payload.size(), std::span(loads).first(pairs_.size()));
  if (fresh.stripes.count == 0) return Progress::pending;
  for (const Stripe& part : std::span(fresh.stripes.item).first(fresh.stripes.count)) {
    PortPair& pair = *pairs_[part.rail];
    const Bytes bytes = part.bytes + kMaxWriteHeader;
    const std::uint32_t requests = pair.rail().requests_for(bytes);
    if (requests == 1) continue;
    if (requests > kLongestFragment) {
      return fail(Errc::unsupported,
                  fmt::format("a write of {} bytes: {} takes {} at once and {} such requests; "
                              "write less at a time",
                              fresh.payload.size(), pair.rail().name(), pair.rail().longest_write(),
                              kLongestFragment));
    }
    if (channel_of(pair, bytes) == nullptr) return Progress::pending;
  }
  const bool fits =
      (!fresh.has_immediate || fresh.immediate <= 0xffff) && (fresh.key.flags & kCopied) == 0;
  fresh.form = fresh.stripes.count == 1 && fits ? Form::whole : Form::striped;
  return Progress::done;
}

bool Outgoing::far_away(const Message& of, const PortPair& pair) const noexcept {
  return (of.far >> pair.rail_index() & 1) != 0 || (of.key.far >> pair.peer_rail() & 1) != 0;
}

Bytes Outgoing::bytes_of(const Message& of, unsigned fragment) noexcept {
  if (of.form == Form::whole) return of.header_bytes + of.payload.size();
  return fragment == 0 ? Bytes{0} : of.stripes.item[fragment - 1].bytes;
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

std::uint32_t Outgoing::payload_lkey(const Message& of, const PortPair& pair) const noexcept {
  return of.staged ? core_.staging.lkey(pair.rail_index()) : of.lkeys[pair.rail_index()];
}

// What fails here fails its port pair, and is sent again when that is quiesced.
void Outgoing::post_fragment(Message& of, unsigned fragment, PortPair& pair, QpChannel& channel,
                             bool soon) noexcept {
  const auto sequence =
      oldest_ + ((static_cast<std::uint64_t>(&of - ring_.data()) - oldest_) % kWindow);
  const auto index = static_cast<std::uint8_t>(fragment);
  const int error =
      fragment == 0 && of.form != Form::whole
          ? post_head(of, {sequence, 0, index}, pair, channel, soon)
          : post_write(of, {sequence, bytes_of(of, fragment), index}, pair, channel, soon);
  const bool write = fragment > 0 || of.form == Form::whole;
  if (write && pair.guarded()) to_confirm_ = std::max(to_confirm_, sequence + 1);
  if (error != 0) {
    pair.fail(fmt::format("ibv_post_send: {}", std::strerror(error)), core_.clock->now());
  }
}

int Outgoing::post_head(const Message& of, Fragment fragment, PortPair& pair, QpChannel& channel,
                        bool soon) noexcept {
  fragment.bytes =
      sizeof(Head) + of.header_bytes + (of.form == Form::eager ? of.payload.size() : 0);
  ibv_sge piece =
      piece_of(slot(fragment.sequence), fragment.bytes, place_.lkeys[pair.rail_index()]);
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  if (fragment.bytes <= channel.inline_bytes()) request.send_flags |= IBV_SEND_INLINE;
  return channel.post(request, fragment, soon);
}

// The last write has the immediate. Plain writes go before it: what is more than the NIC takes at
// once, and all bytes where the fabric reroutes packets: there a write with immediate has to come
// in order, and plain ones need not.
int Outgoing::post_write(const Message& of, const Fragment& fragment, PortPair& pair,
                         QpChannel& channel, bool soon) noexcept {
  const bool whole = of.form == Form::whole;
  const Stripe& part = of.stripes.item[whole ? 0 : fragment.index - 1U];
  const bool apart = pair.rail().adaptive() && fragment.bytes > core_.options.adaptive_threshold;
  std::array<ibv_sge, 2> pieces{};
  ibv_send_wr bytes{};
  bytes.opcode = IBV_WR_RDMA_WRITE;
  bytes.sg_list = pieces.data();
  bytes.wr.rdma.rkey = of.key.rkey[pair.peer_rail()];
  std::uint64_t to = of.key.base + of.offset + (whole ? 0 : of.header_bytes + part.offset);
  const std::byte* from = of.payload.data() + part.offset;
  Bytes header = whole ? of.header_bytes : 0;
  const Bytes piece = pair.rail().piece_of(fragment.bytes);
  for (Bytes left = part.bytes;;) {
    const Bytes now = std::min(left, piece - header);
    bytes.num_sge = 0;
    const auto add = [&](const ibv_sge& piece) {
      if (piece.length > 0) pieces[static_cast<std::size_t>(bytes.num_sge++)] = piece;
    };
    add(piece_of(slot(fragment.sequence) + sizeof(Head), header, place_.lkeys[pair.rail_index()]));
    add(piece_of(from, now, payload_lkey(of, pair)));
    bytes.wr.rdma.remote_addr = to;
    if (now == left) break;
    if (const int error = channel.post_part(bytes, fragment); error != 0) return error;
    left -= now;
    from += now;
    to += header + now;
    header = 0;
  }
  Signal signal{SignalKind::stripe, fragment.sequence,
                static_cast<std::uint16_t>(fragment.index - 1)};
  if (whole) {
    signal.kind = of.has_immediate ? SignalKind::whole_immediate : SignalKind::whole;
    signal.low = static_cast<std::uint16_t>(of.immediate);
  }
  ibv_send_wr last = bytes;
  last.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  last.imm_data = htobe32(encode(signal));
  if (!apart) return channel.post(last, fragment, soon);
  last.num_sge = 0;
  return channel.post(last, fragment, soon, &bytes);
}

void Outgoing::acknowledged(const Fragment& fragment) noexcept {
  Message& of = message(fragment.sequence);
  of.unacknowledged = static_cast<std::uint16_t>(of.unacknowledged & ~(1U << fragment.index));
  if (of.unacknowledged != 0) return;
  --unfinished_;
  if (of.staged) core_.staging.give_back(of.payload.data(), of.payload.size());
  if (of.form != Form::eager) {
    core_.finish({CompletionKind::write_done, peer_, 0, of.cookie});
  }
  while (oldest_ != next_ && message(oldest_).unacknowledged == 0) ++oldest_;
}

void Outgoing::lost(const Fragment& fragment) noexcept {
  Message& of = message(fragment.sequence);
  of.todo = static_cast<std::uint16_t>(of.todo | 1U << fragment.index);
  ++lost_;
  ++core_.counters.resent;
  if (++of.losses[fragment.index] >= kMostResends) worn_out_ = true;
}

void Outgoing::peer_delivered(std::uint64_t messages) noexcept {
  // A peer that claims what was never sent gains nothing by it.
  if (messages <= next_) delivered_ = std::max(delivered_, messages);
}

std::string Outgoing::state() const {
  return fmt::format(
      "{} posted, {} unfinished, {} fragments to resend, oldest {}, {} delivered there", next_,
      unfinished_, lost_, oldest_, delivered_);
}

void Outgoing::abandon() noexcept {
  for (; oldest_ != next_; ++oldest_) {
    Message& of = message(oldest_);
    if (of.unacknowledged != 0 && of.staged) {
      core_.staging.give_back(of.payload.data(), of.payload.size());
    }
    of.unacknowledged = of.todo = 0;
  }
  unfinished_ = lost_ = 0;
}

void Outgoing::resend() noexcept {
  if (worn_out_) return;
  for (std::uint64_t sequence = oldest_; lost_ != 0 && sequence != next_; ++sequence) {
    Message& of = message(sequence);
    while (of.todo != 0) {
      PortPair* pair = nullptr;
      const auto fragment = static_cast<unsigned>(std::countr_zero(of.todo));
      QpChannel* channel = choose(&pair, bytes_of(of, fragment));
      if (channel == nullptr) return;
      post_fragment(of, fragment, *pair, *channel, true);
      of.todo = static_cast<std::uint16_t>(of.todo & ~(1U << fragment));
      --lost_;
    }
  }
}

}  // namespace gdrx::verbs
