// SPDX-License-Identifier: Apache-2.0
// Two sessions and what lies between them: a wire that loses nothing.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "transport/secure/tls_session.hpp"

namespace gdrx::test {

using Bytes = std::vector<std::byte>;

inline Key key_of(std::uint8_t seed) {
  std::array<std::byte, Key::kBytes> bytes{};
  bytes.fill(std::byte{seed});
  return Key(bytes);
}

inline TlsSession::FindKey knows(std::string name, Key key) {
  return [=](std::string_view identity) {
    return identity == name ? std::optional<Key>(key) : std::nullopt;
  };
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// What is on its way from one to the other; kept, as a listener would.
inline Bytes carry(TlsSession& from, TlsSession& to) {
  Bytes seen;
  while (!from.unsent().empty()) {
    const std::size_t some = to.feed(from.unsent());
    seen.insert(seen.end(), from.unsent().begin(), from.unsent().begin() + static_cast<long>(some));
    from.sent(some);
    if (some == 0) break;
  }
  return seen;
}

struct Pair {
  TlsSession client;
  TlsSession server;
  Bytes seen{};  // both ways

  static Pair make(const Key& mine = key_of(1), const Key& theirs = key_of(1),
                   const TlsSession::Options& options = {}) {
    return {*TlsSession::client("link 3 5", mine, options),
            *TlsSession::server(knows("link 3 5", theirs), options)};
  }
  Result<void> shake() {
    for (int i = 0; i < 4; ++i) {
      const Progress of_client = GDRX_TRY(client.handshake());
      note(carry(client, server));
      const Progress of_server = GDRX_TRY(server.handshake());
      note(carry(server, client));
      if (of_client == Progress::done && of_server == Progress::done) return {};
    }
    return fail(Errc::timeout, "the handshake does not end");
  }
  void note(const Bytes& more) { seen.insert(seen.end(), more.begin(), more.end()); }
};

inline Bytes random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace gdrx::test
