// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/greeting.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

namespace gdrx::tcp {
namespace {

// Of one connection's two ends and numbers.
struct Keys {
  Key knock;
  Key reply;
  Key session;
};

Result<Keys> keys_of(const Key& acceptor, const Key& secret, std::int32_t from, std::int32_t to,
                     const Nonce& theirs, const Nonce& mine) {
  KeyContext context;
  context.add(secret.bytes()).add(from).add(to);
  context.add(std::span<const std::byte>(theirs)).add(std::span<const std::byte>(mine));
  Keys keys;
  keys.knock = GDRX_TRY(derive(acceptor, "gdrx tcp knock", context));
  keys.reply = GDRX_TRY(derive(acceptor, "gdrx tcp reply", context));
  keys.session = GDRX_TRY(derive(acceptor, "gdrx tcp session", context));
  return keys;
}

Result<Key> knock_proof(const Key& key, const Knock& knock) {
  KeyContext context;
  context.add(knock.plain).add(std::span<const std::byte>(knock.tag));
  return derive(key, "gdrx tcp knock proof", context);
}

Result<Key> reply_proof(const Key& key, Verdict verdict) {
  KeyContext context;
  context.add(static_cast<std::uint32_t>(verdict));
  return derive(key, "gdrx tcp reply proof", context);
}

std::string_view named(bool plain) { return plain ? "GDRX_TCP_PLAIN=1" : "GDRX_TCP_PLAIN=0"; }

}  // namespace

Result<Nonce> random_nonce() {
  Nonce nonce;
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) {
    return fail(Errc::system, "getrandom", errno);
  }
  return nonce;
}

Result<Nonce> tag_of(const Key& connector, const Key& acceptor) {
  KeyContext context;
  context.add(GDRX_TRY(derive(acceptor, "gdrx tcp name")).bytes());
  const Key key = GDRX_TRY(derive(connector, "gdrx tcp tag", context));
  Nonce tag;
  std::copy_n(key.bytes().begin(), tag.size(), tag.begin());
  return tag;
}

Result<Caller> Caller::create(const Identity& self, const Address& to) {
  if ((to.plain != 0) != self.plain) {
    return fail(Errc::mismatch,
                fmt::format("rank {} has {} and rank {} has {}: set the same on every rank",
                            index(self.rank), named(self.plain), to.rank, named(to.plain != 0)));
  }
  Caller caller(self, to);
  caller.mine_ = GDRX_TRY(random_nonce());
  return caller;
}

Result<Knock> Caller::answer(const Challenge& challenge) {
  if (challenge.magic != kMagic || (challenge.plain != 0) != self_.plain) {
    return fail(Errc::protocol, "what listens there is not this job's");
  }
  Knock knock;
  knock.from = index(self_.rank);
  knock.to = to_.rank;
  knock.plain = self_.plain ? 1 : 0;
  knock.nonce = mine_;
  const Key theirs{std::span<const std::byte, Key::kBytes>(to_.key)};
  knock.tag = GDRX_TRY(tag_of(self_.key, theirs));
  const Keys keys =
      GDRX_TRY(keys_of(theirs, self_.secret, knock.from, knock.to, challenge.nonce, mine_));
  const Key proof = GDRX_TRY(knock_proof(keys.knock, knock));
  std::copy(proof.bytes().begin(), proof.bytes().end(), knock.proof.begin());
  answer_ = keys.reply;
  session_ = keys.session;
  return knock;
}

Result<Verdict> Caller::check(const Reply& reply) const {
  const Key proof = GDRX_TRY(reply_proof(answer_, reply.verdict));
  if (reply.magic != kMagic ||
      !(Key{std::span<const std::byte, Key::kBytes>(reply.proof)} == proof)) {
    return fail(Errc::protocol, "what listens there has not the peer's key");
  }
  return reply.verdict;
}

Result<ServerHandshake> ServerHandshake::create(const Identity& self) {
  ServerHandshake handshake(self);
  handshake.challenge_.plain = self.plain ? 1 : 0;
  handshake.challenge_.nonce = GDRX_TRY(random_nonce());
  return handshake;
}

Result<void> ServerHandshake::check(const Knock& knock) {
  if (knock.magic != kMagic || knock.to != index(self_->rank) || knock.from < 0 ||
      (knock.plain != 0) != self_->plain) {
    return fail(Errc::protocol, "a knock that is not for this device");
  }
  const Keys keys = GDRX_TRY(
      keys_of(self_->key, self_->secret, knock.from, knock.to, challenge_.nonce, knock.nonce));
  const Key proof = GDRX_TRY(knock_proof(keys.knock, knock));
  if (!(Key{std::span<const std::byte, Key::kBytes>(knock.proof)} == proof)) {
    return fail(Errc::protocol, "a knock of somebody who has not this device's key");
  }
  from_ = Rank{knock.from};
  tag_ = knock.tag;
  answer_ = keys.reply;
  session_ = keys.session;
  return {};
}

Result<Reply> ServerHandshake::reply(Verdict verdict) const {
  Reply reply;
  reply.verdict = verdict;
  const Key proof = GDRX_TRY(reply_proof(answer_, verdict));
  std::copy(proof.bytes().begin(), proof.bytes().end(), reply.proof.begin());
  return reply;
}

}  // namespace gdrx::tcp
