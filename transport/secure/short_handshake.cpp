// SPDX-License-Identifier: Apache-2.0
#include "transport/secure/short_handshake.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

namespace gdrx {
namespace {

// Of the client's chance alone, and of both.
constexpr std::string_view kGreeting = "gdrx short handshake: greeting";
constexpr std::string_view kServerProof = "gdrx short handshake: server";
constexpr std::string_view kClientProof = "gdrx short handshake: client";
constexpr std::string_view kServerSecret = "gdrx short handshake: server's records";
constexpr std::string_view kClientSecret = "gdrx short handshake: client's records";

}  // namespace

Result<Key> ShortHandshake::made(std::string_view what) const {
  return derive(key_, what,
                KeyContext()
                    .add(std::string_view(identity_))
                    .add(std::span<const std::byte>(of_client_))
                    .add(std::span<const std::byte>(of_server_)));
}

Result<void> ShortHandshake::say_proof(std::string_view proof) {
  const Key said = GDRX_TRY(made(proof));
  wire_.out.append(said.bytes());
  return {};
}

Result<void> ShortHandshake::say_chance(Chance& own, std::string_view proof) {
  if (getrandom(own.data(), own.size(), 0) != static_cast<ssize_t>(own.size())) {
    return fail(Errc::system, "getrandom", errno);
  }
  wire_.out.append(own);
  spoke_ = true;
  return say_proof(proof);
}

Result<bool> ShortHandshake::hear_proof(std::span<const std::byte> said,
                                        std::string_view proof) const {
  if (said.size() < Key::kBytes) return false;
  if (GDRX_TRY(made(proof)) == Key(said.first<Key::kBytes>())) return true;
  return fail(Errc::protocol, "handshake: the peer did not show the key");
}

Result<bool> ShortHandshake::hear_chance(Chance& theirs, std::string_view proof) {
  const auto said = wire_.in.full();
  if (said.size() < theirs.size() + Key::kBytes) return false;
  std::copy_n(said.begin(), theirs.size(), theirs.begin());
  GDRX_TRY(hear_proof(said.subspan(theirs.size()), proof));
  wire_.in.take(theirs.size() + Key::kBytes);
  return true;
}

Result<Progress> ShortHandshake::step_of_client() {
  if (!spoke_) GDRX_TRY(say_chance(of_client_, kGreeting));
  if (!GDRX_TRY(hear_chance(of_server_, kServerProof))) return Progress::pending;
  GDRX_TRY(say_proof(kClientProof));
  return Progress::done;
}

Result<Progress> ShortHandshake::step_of_server() {
  if (!spoke_) {
    if (!GDRX_TRY(hear_chance(of_client_, kGreeting))) return Progress::pending;
    GDRX_TRY(say_chance(of_server_, kServerProof));
  }
  if (!GDRX_TRY(hear_proof(wire_.in.full(), kClientProof))) return Progress::pending;
  wire_.in.take(Key::kBytes);
  return Progress::done;
}

Result<Progress> ShortHandshake::step() {
  return end_ == End::client ? step_of_client() : step_of_server();
}

Result<Handshake::Outcome> ShortHandshake::outcome() const {
  const Key of_client = GDRX_TRY(made(kClientSecret));
  const Key of_server = GDRX_TRY(made(kServerSecret));
  return Outcome{TlsSuite::aes_128_gcm, of_client, of_server};
}

}  // namespace gdrx
