// SPDX-License-Identifier: Apache-2.0
// What a stranger may send to a listener, and what may answer a caller: nothing of it is trusted.
#include <cstdlib>

#include "transport/secure/tls_session.hpp"

using namespace gdrx;  // NOLINT

namespace {

void feed_all(TlsSession& session, std::span<const std::byte> input) {
  std::byte out[64];
  while (!input.empty()) {
    const std::size_t some = session.feed(input);
    input = input.subspan(some);
    if (!session.read(out)) return;
    if (session.established()) std::abort();  // nobody has the key
    session.sent(session.unsent().size());
    if (some == 0) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  std::array<std::byte, Key::kBytes> bytes{};
  bytes.fill(std::byte{7});
  const Key key(bytes);
  auto server =
      TlsSession::server([&](std::string_view) -> std::optional<Key> { return Key(bytes); });
  if (server) feed_all(*server, input);
  auto client = TlsSession::client("gdrx-link-3 0 1", key);
  if (client && client->handshake()) feed_all(*client, input);
  return 0;
}
