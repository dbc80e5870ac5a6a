// SPDX-License-Identifier: Apache-2.0
// A handshake without an exchange of keys, for connections within a host that nobody can record. It
// takes a tenth of TLS's time. Records follow as after TLS's.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "transport/secure/handshake.hpp"

namespace gdrx {

/// client: its chance, and the proof of it;  server: its chance, and the proof of both;  client:
/// the proof of both.
/// A proof is derived from the key. The server says nothing to whoever has shown none, the client
/// nothing more to a server that has not. What was recorded is no answer to a new chance.
class ShortHandshake final : public Handshake {
 public:
  enum class End : std::uint8_t { client, server };
  /// Both know `identity`.
  ShortHandshake(const Wire& wire, End end, std::string identity, const Key& key)
      : wire_(wire), end_(end), identity_(std::move(identity)), key_(key) {}

  Result<Progress> step() override;
  const std::string& identity() const noexcept override { return identity_; }
  Result<Outcome> outcome() const override;

 private:
  using Chance = std::array<std::byte, Key::kBytes>;
  Result<Key> made(std::string_view what) const;
  Result<void> say_chance(Chance& own, std::string_view proof);
  Result<void> say_proof(std::string_view proof);
  Result<bool> hear_chance(Chance& theirs, std::string_view proof);
  Result<bool> hear_proof(std::span<const std::byte> said, std::string_view proof) const;
  Result<Progress> step_of_client();
  Result<Progress> step_of_server();

  Wire wire_;
  End end_;
  std::string identity_;
  Key key_;
  Chance of_client_{};
  Chance of_server_{};
  bool spoke_ = false;  // has said its chance
};

}  // namespace gdrx
