// SPDX-License-Identifier: Apache-2.0
// A key is renewed in the middle of what is said: there is no place to stop for want of memory.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "tests/comm/shortage.hpp"
#include "transport/secure/tls_session.hpp"

namespace gdrx {
namespace {

void carry(TlsSession& from, TlsSession& to) { from.sent(to.feed(from.unsent())); }

TEST(TlsSession, RenewsItsKeyWithoutMemoryAtBothEnds) {
  const TlsSession::Options options{.records_a_key = 1};
  const Key key;
  auto client = *TlsSession::client("one", key, options);
  auto server = *TlsSession::server([&](std::string_view) { return std::optional(key); }, options);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(client.handshake());
    carry(client, server);
    ASSERT_TRUE(server.handshake());
    carry(server, client);
  }
  ASSERT_TRUE(client.established() && server.established());
  for (std::uint8_t word = 1; word < 9; ++word) {
    const std::array said{std::byte{word}};
    std::array heard{std::byte{0}};
    {
      const test::Shortage none(1);
      EXPECT_EQ(client.write(said), 1U);
      carry(client, server);
      EXPECT_EQ(server.read(heard), 1U);
      EXPECT_FALSE(test::Shortage::came());
    }
    EXPECT_EQ(heard, said);
  }
}

}  // namespace
}  // namespace gdrx
