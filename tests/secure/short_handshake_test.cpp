// SPDX-License-Identifier: Apache-2.0
// The handshake of connections within a host.
#include "transport/secure/short_handshake.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "transport/secure/tls_session.hpp"

namespace gdrx {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kChance = Key::kBytes;
constexpr std::size_t kProof = Key::kBytes;

Bytes take_all(TlsSession& from) {
  Bytes said(from.unsent().begin(), from.unsent().end());
  from.sent(said.size());
  return said;
}

class Short : public testing::Test {
 protected:
  // What the client says first.
  Bytes greeting() {
    EXPECT_TRUE(client.handshake());
    return take_all(client);
  }
  Result<Progress> hear(TlsSession& who, const Bytes& said) {
    who.feed(said);
    return who.handshake();
  }
  Key key = *Key::random();
  TlsSession client = TlsSession::client_here("root", key);
  TlsSession server = TlsSession::server_here("root", key);
};

TEST_F(Short, CarriesWhatIsWrittenBothWaysOnceBothHaveShownTheKey) {
  ASSERT_TRUE(hear(server, greeting()));
  ASSERT_EQ(hear(client, take_all(server)), Progress::done);
  ASSERT_EQ(hear(server, take_all(client)), Progress::done);
  for (const auto& [from, to] : {std::pair(&client, &server), std::pair(&server, &client)}) {
    const Bytes word(100, std::byte{7});
    ASSERT_EQ(from->write(word), word.size());
    Bytes heard(200);
    to->feed(take_all(*from));
    ASSERT_EQ(to->read(heard), word.size());
  }
}

TEST_F(Short, OfAServerSaysNothingToWhoeverShowsNoKey) {
  for (const auto& [key_of_other, name] : {std::pair(*Key::random(), "root"), {key, "another"}}) {
    TlsSession asked = TlsSession::server_here("root", key);
    TlsSession other = TlsSession::client_here(name, key_of_other);
    EXPECT_TRUE(other.handshake());
    EXPECT_EQ(hear(asked, take_all(other)).error().code, Errc::protocol);
    EXPECT_TRUE(asked.unsent().empty());
  }
}

TEST_F(Short, OfAClientSaysNothingMoreToAServerThatShowsNoKey) {
  EXPECT_EQ(greeting().size(), kChance + kProof);
  EXPECT_EQ(hear(client, Bytes(kChance + kProof)).error().code, Errc::protocol);
  EXPECT_TRUE(client.unsent().empty());
}

// It is heard, but its old proof is none of the new chances.
TEST_F(Short, DoesNotTakeARecordedConversationForANewOne) {
  const Bytes first = greeting();
  ASSERT_TRUE(hear(server, first));
  ASSERT_EQ(hear(client, take_all(server)), Progress::done);
  const Bytes last = take_all(client);
  TlsSession again = TlsSession::server_here("root", key);
  ASSERT_EQ(hear(again, first), Progress::pending);
  EXPECT_EQ(hear(again, last).error().code, Errc::protocol);
}

// What one says cannot be said to it in turn.
TEST_F(Short, IsNotDoneWithOneself) {
  EXPECT_EQ(hear(client, greeting()).error().code, Errc::protocol);
}

TEST_F(Short, IsTheSameWhereverItsBytesAreCut) {
  for (const std::byte byte : greeting()) ASSERT_EQ(hear(server, {byte}), Progress::pending);
  const Bytes answer = take_all(server);
  EXPECT_EQ(answer.size(), kChance + kProof);
  for (const std::byte byte : answer) ASSERT_TRUE(hear(client, {byte}));
  for (const std::byte byte : take_all(client)) ASSERT_TRUE(hear(server, {byte}));
  EXPECT_TRUE(client.established());
  EXPECT_TRUE(server.established());
}

}  // namespace
}  // namespace gdrx
