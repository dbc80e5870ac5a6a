// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "transport/tcp/pending_peers.hpp"

namespace gdrx::tcp {
namespace {

// From the connection to its last word. Honest callers that are stopped meanwhile call again.
constexpr std::chrono::seconds kGuestTime{5};

class JoiningPeer final : public Door::PendingPeer {
 public:
  JoiningPeer(Door& door, Socket socket, ServerHandshake handshake, Instant now)
      : door_(door), socket_(std::move(socket)), handshake_(std::move(handshake)), came_(now) {}
  ~JoiningPeer() override {
    door_.unwatch(socket_.fd());
    if (welcomed_) door_.host().left(handshake_.from());
  }

  int fd() const noexcept override { return socket_.fd(); }
  Instant silent_since() const noexcept override { return knock_.empty() ? came_ : Instant::max(); }
  bool is_stranger() const noexcept override { return !known_; }
  Next look_at_clock(Instant now) override {
    return now - came_ >= kGuestTime ? Next::gone : Next::stay;
  }

  Next step(Instant) override {
    const auto stepped = go_on();
    return stepped && *stepped == Progress::pending ? Next::stay : Next::gone;
  }

 private:
  Result<Progress> go_on() {
    if (!welcomed_) {
      if (GDRX_TRY(knock_.receive(socket_)) == Progress::pending) return Progress::pending;
      GDRX_TRY(handshake_.check(knock_.value()));
      known_ = true;
      const Verdict verdict = door_.host().judge(handshake_.from(), handshake_.tag());
      welcomed_ = verdict == Verdict::welcome;
      GDRX_TRY(send_whole(socket_, GDRX_TRY(handshake_.reply(verdict))));
      if (!welcomed_) return Progress::done;
      if (!door_.self().plain) GDRX_TRY(start_tls());
    }
    if (tls_ && GDRX_TRY(shake_hands(socket_, *tls_)) == Progress::pending) {
      return Progress::pending;
    }
    welcomed_ = false;
    door_.unwatch(socket_.fd());
    door_.host().joined(handshake_.from(), Stream(std::move(socket_), std::move(tls_)));
    return Progress::done;
  }

  Result<void> start_tls() {
    tls_ = GDRX_TRY(TlsSession::server(
        [key = handshake_.session_key()](std::string_view) { return std::optional<Key>(key); },
        Stream::kTls));
    return {};
  }

  Door& door_;
  Socket socket_;
  ServerHandshake handshake_;
  Instant came_;
  Expected<Knock> knock_;
  std::optional<TlsSession> tls_;
  bool known_ = false;  // has shown the key
  bool welcomed_ = false;
};

}  // namespace

Result<Progress> shake_hands(const Socket& socket, TlsSession& session) {
  while (true) {
    const auto shaken = session.handshake();
    while (!session.unsent().empty()) {
      const std::size_t sent = GDRX_TRY(socket.send_some(session.unsent()));
      if (sent == 0) return Progress::pending;
      session.sent(sent);
    }
    if (!shaken) return tl::unexpected(shaken.error());
    if (*shaken == Progress::done) return Progress::done;
    const std::size_t came = GDRX_TRY(socket.receive_some(session.space()));
    if (came == 0) return Progress::pending;
    session.received(came);
  }
}

std::unique_ptr<Door::PendingPeer> make_joining_peer(Door& door, Socket socket,
                                                     ServerHandshake handshake, Instant now) {
  return std::make_unique<JoiningPeer>(door, std::move(socket), std::move(handshake), now);
}

}  // namespace gdrx::tcp
