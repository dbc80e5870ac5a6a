// SPDX-License-Identifier: Apache-2.0
// How two devices show each other that they are of one job, before anything else is done for a
// stranger: the acceptor challenges, the connector answers, the acceptor answers that. Pure.
//
// Both prove the acceptor's key, which only ranks of the job were told, over connections that hide
// it. Nothing can be repeated: each side's number enters both proofs. What a stranger costs is one
// short message and one hash.
#pragma once

#include <optional>

#include "gdrx/result.hpp"
#include "transport/tcp/wire.hpp"

namespace gdrx::tcp {

/// This device, as its peers know it.
struct Identity {
  Rank rank{};
  Key key;
  Key secret;  // of GDRX_SECRET_FILE; zeros without one
  bool plain = false;
};

Result<Nonce> random_nonce();
/// What `connector` shows `acceptor`: known to whoever has both addresses.
Result<Nonce> tag_of(const Key& connector, const Key& acceptor);

/// The connector's side of one connection.
class Caller {
 public:
  /// `to`: the peer's address, checked.
  static Result<Caller> create(const Identity& self, const Address& to);
  /// Errc::protocol: what answers there is not gdrx, or of another mind about encryption.
  Result<Knock> answer(const Challenge& challenge);
  Result<Verdict> check(const Reply& reply) const;
  /// For TLS, after check().
  const Key& session_key() const noexcept { return session_; }

 private:
  Caller(const Identity& self, const Address& to) : self_(self), to_(to) {}
  Identity self_;
  Address to_;
  Nonce mine_{};
  Key answer_;  // what a reply's proof is made of
  Key session_;
};

/// The acceptor's.
class ServerHandshake {
 public:
  static Result<ServerHandshake> create(const Identity& self);
  const Challenge& challenge() const noexcept { return challenge_; }
  /// Errc::protocol for anybody who has not this device's key.
  Result<void> check(const Knock& knock);
  Result<Reply> reply(Verdict verdict) const;
  Rank from() const noexcept { return from_; }
  const Nonce& tag() const noexcept { return tag_; }
  const Key& session_key() const noexcept { return session_; }

 private:
  explicit ServerHandshake(const Identity& self) : self_(&self) {}
  const Identity* self_;  // outlives this
  Challenge challenge_;
  Rank from_{};
  Nonce tag_{};
  Key answer_;
  Key session_;
};

}  // namespace gdrx::tcp
