// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "transport/tcp/pending_peers.hpp"

namespace gdrx::tcp {
namespace {

constexpr std::chrono::milliseconds kFirstPause{20};
constexpr std::chrono::milliseconds kLongestPause{1000};
// A side that has the key answers a knock; so often it may be too busy to.
constexpr int kMostRefusals = 5;

class Call final : public Door::PendingPeer {
 public:
  Call(Door& door, const Address& to, Instant now)
      : door_(door), to_(to), give_up_(now + door.patience()), begin_at_(now) {}

  int fd() const noexcept override { return socket_.fd(); }
  bool is_call() const noexcept override { return true; }
  bool is_call_to(Rank peer) const noexcept override { return to_.rank == index(peer); }

  void lost() noexcept override {
    try {
      door_.host().unreachable(peer(), no_memory());
    } catch (const std::bad_alloc&) {  // nor is there memory to end the peer: who asked hears of it
    }
  }

  Next look_at_clock(Instant now) override {
    if (socket_.valid() || now < begin_at_) return Next::stay;
    return step(now);
  }

  Next step(Instant now) override {
    const auto stepped = go_on();
    if (!stepped) return failed(stepped.error(), now);
    return *stepped == Progress::done ? Next::gone : Next::stay;
  }

 private:
  enum class Stage : std::uint8_t { none, connecting, challenge, reply, tls };

  Rank peer() const noexcept { return Rank{to_.rank}; }

  Result<Progress> go_on() {
    if (stage_ == Stage::none) {
      socket_ = GDRX_TRY(Socket::begin_connect(to_.at));
      stage_ = Stage::connecting;
      door_.watch(*this, true);
    }
    if (stage_ == Stage::connecting) {
      if (GDRX_TRY(socket_.connected()) == Progress::pending) return Progress::pending;
      stage_ = Stage::challenge;
      door_.watch(*this, false);
    }
    if (stage_ == Stage::challenge) {
      if (GDRX_TRY(challenge_.receive(socket_)) == Progress::pending) return Progress::pending;
      caller_.emplace(GDRX_TRY(Caller::create(door_.self(), to_)));
      GDRX_TRY(send_whole(socket_, GDRX_TRY(caller_->answer(challenge_.value()))));
      stage_ = Stage::reply;
    }
    if (stage_ == Stage::reply) {
      if (GDRX_TRY(reply_.receive(socket_)) == Progress::pending) return Progress::pending;
      switch (GDRX_TRY(caller_->check(reply_.value()))) {
        case Verdict::welcome:
          break;
        case Verdict::crossed:
          door_.host().crossed(peer());
          return Progress::done;
        case Verdict::taken:
          return fail(Errc::protocol, "it holds another connection of this rank");
        default:
          return fail(Errc::protocol, "it answers what is no answer");
      }
      if (!door_.self().plain) GDRX_TRY(start_tls());
      stage_ = Stage::tls;
    }
    if (tls_ && GDRX_TRY(shake_hands(socket_, *tls_)) == Progress::pending) {
      return Progress::pending;
    }
    door_.unwatch(socket_.fd());
    door_.host().joined(peer(), Stream(std::move(socket_), std::move(tls_)));
    return Progress::done;
  }

  Result<void> start_tls() {
    tls_ = GDRX_TRY(TlsSession::client(fmt::format("gdrx tcp {}", index(door_.self().rank)),
                                       caller_->session_key(), Stream::kTls));
    return {};
  }

  // A listener that is too busy, or takes this for a stranger's silence, closes: later it answers.
  Next failed(const Error& error, Instant now) {
    refusals_ += stage_ == Stage::reply ? 1 : 0;
    const bool refused = error.native == ECONNREFUSED;
    if (!refused && refusals_ < kMostRefusals && now < give_up_) {
      door_.unwatch(socket_.fd());
      socket_ = Socket();
      stage_ = Stage::none;
      challenge_ = {};
      reply_ = {};
      tls_.reset();
      begin_at_ = now + pause_;
      pause_ = std::min<Duration>(2 * pause_, kLongestPause);
      return Next::stay;
    }
    const bool no_key = refusals_ == kMostRefusals;
    door_.host().unreachable(
        peer(), {no_key ? Errc::protocol : Errc::peer_lost,
                 fmt::format("no connection to rank {} at {}: {}{}", to_.rank, to_string(to_.at),
                             describe(error),
                             no_key ? "; is GDRX_SECRET_FILE the same on every rank?" : ""),
                 0});
    return Next::gone;
  }

  Door& door_;
  Address to_;
  Instant give_up_;
  Instant begin_at_;
  Duration pause_ = kFirstPause;
  int refusals_ = 0;
  Stage stage_ = Stage::none;
  Socket socket_;
  Expected<Challenge> challenge_;
  Expected<Reply> reply_;
  std::optional<Caller> caller_;
  std::optional<TlsSession> tls_;
};

}  // namespace

std::unique_ptr<Door::PendingPeer> make_call(Door& door, const Address& to, Instant now) {
  return std::make_unique<Call>(door, to, now);
}

}  // namespace gdrx::tcp
