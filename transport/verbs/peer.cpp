// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/peer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "transport/verbs/wc_text.hpp"

namespace gdrx::verbs {
namespace {

constexpr std::size_t kPage = 4096;
// A rail on which nothing is heard for so many heartbeats, while another one answers, is given up
// without waiting for its QPs' own time-outs.
constexpr int kSilentBeats = 2;
constexpr int kSilentSoftBeats = 5;  // processors may leave one of its queues alone for long

constexpr std::size_t round_up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

Result<std::unique_ptr<Peer>> Peer::create(Core& core, Rank rank, std::uint64_t nonce,
                                           const Pairing& pairing, std::uint32_t first_channel) {
  auto peer = std::unique_ptr<Peer>(new Peer(core, rank, nonce, pairing));
  GDRX_TRY(peer->open(first_channel));
  return peer;
}

// One block: the words that the peer's NICs may write (whole pages, their own registration), the
// words we send, the slots of what goes out, the receives.
Result<void> Peer::open(std::uint32_t first_channel) {
  const std::size_t pairs = pairing_.count;
  const std::size_t qps = core_.options.qps;
  const std::size_t channels = pairs * qps;
  const std::size_t words = round_up(channels * sizeof(CreditWord));
  const std::size_t slots = kWindow * kReceiveSlot;
  memory_ =
      GDRX_TRY(Buffer::create(2 * words + round_up(slots + channels * kReceives * kReceiveSlot)));
  std::byte* base = memory_.data();
  Outgoing::Place place;
  place.memory = base + 2 * words;
  for (const auto& rail : core_.rails) {
    credits_.push_back(GDRX_TRY(rail->domain()->register_memory(
        memory_.bytes().first(words), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
    buffers_.push_back(GDRX_TRY(
        rail->domain()->register_memory(memory_.bytes().subspan(words), IBV_ACCESS_LOCAL_WRITE)));
    place.lkeys.push_back(buffers_.back()->lkey());
  }
  outgoing_.set_place(std::move(place));
  handles_.resize(pairs);
  reach_.resize(pairs);
  for (std::size_t number = 0; number < pairs; ++number) {
    PortPair::Setup setup;
    setup.number = static_cast<std::uint8_t>(number);
    setup.rail_index = pairing_.pairs[number].own;
    setup.peer_rail = pairing_.pairs[number].peer;
    setup.rail = core_.rails[setup.rail_index].get();
    setup.first_channel = first_channel + static_cast<std::uint32_t>(number * qps);
    setup.qps = static_cast<std::uint8_t>(qps);
    setup.leads = core_.nonce < nonce_;
    setup.credit_address =
        reinterpret_cast<std::uintptr_t>(base) + number * qps * sizeof(CreditWord);
    setup.credit_rkey = credits_[setup.rail_index]->rkey();
    setup.psn = static_cast<std::uint32_t>(core_.nonce ^ core_.nonce >> 32);
    for (std::size_t i = 0; i < qps; ++i) {
      const std::size_t channel = number * qps + i;
      setup.memory[i].granted = reinterpret_cast<CreditWord*>(base) + channel;
      setup.memory[i].granting = reinterpret_cast<CreditWord*>(base + words) + channel;
      setup.memory[i].receives = base + 2 * words + slots + channel * kReceives * kReceiveSlot;
      setup.memory[i].lkey = buffers_[setup.rail_index]->lkey();
    }
    pairs_.push_back(std::make_unique<PortPair>(*this, core_.options, setup));
  }
  silent_.resize(pairs);
  heard_ = core_.clock->now();
  return {};
}

void Peer::send_control(Control& message, std::uint8_t pair, bool everywhere) noexcept {
  message.pair = pair;
  message.rank = index(core_.self);
  message.from = core_.nonce;
  message.to = nonce_;
  message.rails = static_cast<std::uint8_t>(core_.rails.size());
  message.qps = core_.options.qps;
  message.own_rails = pairing_.own_word();
  message.peer_rails = pairing_.peer_word();
  message.delivered = delivered();
  message.rail = pairs_[pair]->rail().address();
  for (const auto& over : pairs_) {
    if ((everywhere || over->number() == pair) && handles_[over->number()] != nullptr) {
      over->rail().send(*handles_[over->number()], over->peer(), message);
    }
  }
}

void Peer::on_control(const Control& message, Instant now) {
  stir();
  if (given_up_ || message.pair >= pairs_.size()) return;
  PortPair& pair = *pairs_[message.pair];
  heard_ = now;
  core_.hear(rank_);
  if (auto learned = learn(message.pair, message.rail); !learned) {
    return give_up(learned.error().what);
  }
  switch (message.kind) {
    case ControlKind::hello:
      return pair.on_hello(message, now);
    case ControlKind::quiesced:
      return pair.on_quiesced(message, now);
    case ControlKind::ping:
      pair.on_heard(now);
      return ping(pair, ControlKind::pong);
    case ControlKind::pong:
      return pair.on_heard(now);
  }
}

void Peer::on_completion(const ibv_wc& done, const QpChannel::Mark& mark, PortPair& pair,
                         QpChannel& channel) {
  stir();
  if (mark.receive) channel.receive_ended();
  if (done.status != IBV_WC_SUCCESS) {
    if (is_final(done.status)) {
      last_.pair = pair.number();
      return give_up(fmt::format("{} (qp {:#x})", text_of(done.status), channel.number()));
    }
    if (done.status != IBV_WC_WR_FLUSH_ERR) {
      pair.fail(fmt::format("{} (qp {:#x})", text_of(done.status), channel.number()),
                core_.clock->now());
    } else {
      pair.fail("its work was flushed", core_.clock->now());
    }
    return;
  }
  core_.hear(rank_);
  if (!mark.receive) {
    heard_ = core_.clock->now();
    pair.on_acknowledged(heard_);
    channel.retire(mark.index,
                   [this](const Fragment& fragment) { outgoing_.acknowledged(fragment); });
    return;
  }
  on_receive(done, mark, pair, channel);
}

// Of a thousand peers few have anything to do.
void Peer::round_of(std::vector<Peer*>& stirred, bool idle) noexcept {
  for (std::size_t i = 0; i < stirred.size();) {
    if (stirred[i]->round(idle)) {
      ++i;
      continue;
    }
    stirred[i]->stirred_ = false;
    stirred[i] = stirred.back();
    stirred.pop_back();
  }
}

// Credits and flushes. What the peer writes is looked for while it has something to acknowledge,
// and where a post wants it. False: until it is stirred nothing is due.
bool Peer::round(bool idle) noexcept {
  if (outgoing_.has_lost()) outgoing_.resend();
  bool due = guarded_ || outgoing_.unfinished() > 0;
  for (const auto& pair : pairs_) {
    if (pair->state() != PairState::up) {
      due = due || pair->state() != PairState::dead;
      continue;
    }
    for (QpChannel& channel : pair->channels()) {
      channel.grant(delivered());
      outgoing_.peer_delivered(channel.peer_delivered());
      if (idle) channel.flush();
      due = due || !channel.nothing_due(delivered());
    }
  }
  if (guarded_) exchange_acknowledged();
  return due || outgoing_.has_lost();
}

// Another rail carries on at once; the QPs' own time-outs would take seconds. The last rail that is
// up is left to them: its port may be back before they end.
void Peer::leave_ports_that_are_down(Instant now) {
  const auto carries = [](const auto& pair) {
    return pair->state() == PairState::up && pair->rail().port_up();
  };
  if (std::none_of(pairs_.begin(), pairs_.end(), carries)) return;
  for (const auto& pair : pairs_) {
    if (pair->state() == PairState::up && !pair->rail().port_up()) {
      pair->fail("its port is down", now);
    }
  }
}

void Peer::tick(Instant now) {
  if (given_up_) return;
  leave_ports_that_are_down(now);
  for (const auto& pair : pairs_) {
    const std::size_t number = pair->number();
    if (reach_[number].known) follow_own_address(*pair, now);
    if (handles_[number] == nullptr && reach_[number].known) {
      if (auto tried = reach(*pair, now); !tried) give_up(tried.error().what);
    }
    if (handles_[number] != nullptr) pair->tick(now);
  }
  if (given_up_) return;
  if (outgoing_.worn_out()) {
    return give_up(fmt::format("a part of a message was sent {} times and never acknowledged",
                               Outgoing::kMostResends));
  }
  const bool all_dead = std::all_of(pairs_.begin(), pairs_.end(), [](const auto& pair) {
    return pair->state() == PairState::dead;
  });
  if (all_dead) return give_up("no rail to it is left");
  look_for_silence(now);
}

void Peer::ping(PortPair& pair, ControlKind kind) noexcept {
  Control message;
  message.kind = kind;
  message.epoch = pair.epoch();
  send_control(message, pair.number(), false);
}

// Only while something is owed to us: a peer that computes and does not poll is not lost. Its NICs
// acknowledge without it. And only while this process looks: what came meanwhile is not read yet.
void Peer::look_for_silence(Instant now) {
  // Looks come more seldom than heartbeats where cores are scarce: some of such a gap counts, too.
  const Duration gap = now - std::exchange(look_.at, now);
  const Duration counts =
      std::max<Duration>(core_.options.heartbeat, core_.options.peer_timeout / 8);
  const Duration away = gap - counts;
  if (away > Duration::zero()) heard_ = std::min(now, heard_ + away);
  const bool all_down = std::none_of(pairs_.begin(), pairs_.end(), [](const auto& pair) {
    return pair->state() == PairState::up;
  });
  // Its first word may come late, over any rail that has not failed yet.
  const bool awaited = !ever_up_ && std::any_of(pairs_.begin(), pairs_.end(), [](const auto& pair) {
    return pair->state() == PairState::connecting && pair->epoch() == 1;
  });
  if (awaited || (!owed() && !all_down)) {
    heard_ = beat_ = now;
    std::fill(silent_.begin(), silent_.end(), 0);
    look_.ping = now + core_.options.heartbeat;
    return;
  }
  if (now - heard_ >= core_.options.peer_timeout) {
    return give_up(fmt::format("no NIC of it has acknowledged or answered for {} ms",
                               core_.options.peer_timeout.count()));
  }
  if (now < look_.ping) return;
  look_.ping = now + core_.options.heartbeat;
  // A beat in which no rail was heard says that the peer or this process had no processor, and
  // nothing of a rail.
  const auto heard = [&](std::size_t i) { return pairs_[i]->heard() > beat_; };
  bool any = false;
  for (std::size_t i = 0; i < pairs_.size(); ++i) any = any || heard(i);
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    PortPair& pair = *pairs_[i];
    const bool owed = pair.state() == PairState::up && pair.unacknowledged();
    if (!owed || heard(i)) {
      silent_[i] = 0;
    } else if (any) {
      ++silent_[i];
    }
    if (pair.state() != PairState::up) continue;
    if (silent_[i] >= (pair.rail().soft() ? kSilentSoftBeats : kSilentBeats)) {
      silent_[i] = 0;
      pair.fail("it is silent while another rail answers", now);
    } else {
      ping(pair, ControlKind::ping);
    }
  }
  beat_ = now;
}

// An acknowledgement, by the peer's NICs.
bool Peer::owed() const noexcept {
  if (outgoing_.unfinished() > 0) return true;
  if (!guarded_) return false;
  return confirmed_ < outgoing_.to_confirm() ||
         std::any_of(pairs_.begin(), pairs_.end(), [](const auto& pair) {
           const auto channels = pair->channels();
           return std::any_of(channels.begin(), channels.end(), [](const QpChannel& channel) {
             return channel.open() && channel.confirming();
           });
         });
}

bool Peer::busy() const noexcept {
  return owed() || std::any_of(pairs_.begin(), pairs_.end(), [](auto& pair) {
           return pair->state() == PairState::quiescing || pair->state() == PairState::waiting;
         });
}

std::string Peer::ends_of(PortPair& pair) const {
  const auto gid = [](const RailAddress& rail) {
    ibv_gid raw{};
    std::copy(rail.gid.begin(), rail.gid.end(), raw.raw);
    return rail.ethernet != 0 || rail.lid == 0 ? to_string(raw) : fmt::format("lid {}", rail.lid);
  };
  return fmt::format("{} ({}, qp {:#x}) of rank {} to {} ({}) of rank {}", pair.rail().name(),
                     gid(pair.rail().address()), pair.qp_number(), index(core_.self),
                     pair.peer().name.data(), gid(pair.peer()), index(rank_));
}

std::string Peer::describe() const {
  std::string text = "verbs";
  for (const auto& pair : pairs_) {
    if (pair->state() != PairState::up) continue;
    text += fmt::format("{} {} x{}", text == "verbs" ? ":" : ",", pair->rail().name(),
                        core_.options.qps);
  }
  if (const int label = core_.options.traffic_class; label != 0) {
    text += fmt::format(", traffic class {}", label);
  }
  return text;
}

std::string Peer::state() const {
  std::string text = fmt::format("rank {} to {}: {}, {} delivered", index(core_.self), index(rank_),
                                 outgoing_.state(), incoming_.delivered());
  for (const auto& pair : pairs_) {
    text += fmt::format("; {} {} in epoch {}", pair->rail().name(), to_string(pair->state()),
                        pair->epoch());
  }
  return text;
}

void Peer::fragment_acknowledged(const Fragment& fragment) noexcept {
  ++core_.counters.reconciled;
  outgoing_.acknowledged(fragment);
}

void Peer::fragment_lost(const Fragment& fragment) noexcept {
  stir();
  outgoing_.lost(fragment);
}

void Peer::peer_delivered(std::uint64_t messages) noexcept { outgoing_.peer_delivered(messages); }

void Peer::pair_failed(std::uint8_t pair, const std::string& why) {
  last_.pair = pair;
  last_.why = why;
  confirmed_ = 0;  // what is on its way over it may not come
  ++core_.counters.rails_down;
  rail_lines_.warn(core_.log, core_.clock->now(), "rail {} down: {} (peer rank {})",
                   pairs_[pair]->rail().name(), why, index(rank_));
}

void Peer::pair_reconciled(std::uint8_t pair, std::uint32_t arrived, std::uint32_t lost) {
  rail_lines_.warn(
      core_.log, core_.clock->now(),
      "rail {} reconciled: {} sent again, {} had arrived unacknowledged (peer rank {})",
      pairs_[pair]->rail().name(), lost, arrived, index(rank_));
}

void Peer::pair_up(std::uint8_t pair) {
  stir();
  ever_up_ = true;
  refused_since_.reset();
  guarded_ = guarded_ || pairs_[pair]->guarded();
  heard_ = core_.clock->now();
  PortPair& up = *pairs_[pair];
  if (up.epoch() > 1) {
    rail_lines_.warn(core_.log, core_.clock->now(), "rail {} is back (peer rank {})",
                     up.rail().name(), index(rank_));
  } else {
    core_.log.info(
        "verbs: {}, {} QP(s), {}", ends_of(up), core_.options.qps,
        same_subnet(up.rail().address(), up.peer()) ? "of one subnet" : "joined by number");
  }
}

}  // namespace gdrx::verbs
