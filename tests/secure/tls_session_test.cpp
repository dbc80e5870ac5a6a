// SPDX-License-Identifier: Apache-2.0
// What a session says and hears over a wire that loses nothing, beside a listener or an impostor.
#include "transport/secure/tls_session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "tests/secure/session_pair.hpp"

namespace gdrx {
namespace {

using namespace test;

// Sends all of `message`, and returns what arrives.
Result<Bytes> pass(TlsSession& from, TlsSession& to, std::span<const std::byte> message) {
  Bytes got(message.size());
  std::size_t written = 0;
  std::size_t read = 0;
  for (int idle = 0; read < got.size() && idle < 4; ++idle) {
    const std::size_t more = GDRX_TRY(from.write(message.subspan(written)));
    carry(from, to);
    const std::size_t fresh = GDRX_TRY(to.read(std::span(got).subspan(read)));
    written += more;
    read += fresh;
    if (more + fresh > 0) idle = 0;
  }
  got.resize(read);
  return got;
}

// OpenSSL calls it: no exception passes through its frames, half-way in a handshake.
TEST(TlsSession, EndsWhereThereIsNoMemoryToFindTheKey) {
  Pair pair = Pair::make();
  pair.server =
      *TlsSession::server([](std::string_view) -> std::optional<Key> { throw std::bad_alloc(); });
  Result<void> shaken;
  EXPECT_NO_THROW(shaken = pair.shake());
  EXPECT_FALSE(shaken);
  EXPECT_FALSE(pair.client.established() || pair.server.established());
}

TEST(TlsSession, CarriesWhatIsWrittenBothWaysOnceBothHaveShownTheKey) {
  Pair pair = Pair::make();
  const auto shaken = pair.shake();
  ASSERT_TRUE(shaken) << shaken.error().what;
  EXPECT_EQ(pair.server.identity(), "link 3 5");
  const Bytes there = random_bytes(300'000, 1);
  const Bytes back = random_bytes(70'001, 2);
  EXPECT_EQ(pass(pair.client, pair.server, there), there);
  EXPECT_EQ(pass(pair.server, pair.client, back), back);
}

TEST(TlsSession, LetsAListenerSeeNothingOfWhatItCarries) {
  Pair pair = Pair::make();
  ASSERT_TRUE(pair.shake());
  const std::string text = "the ranks' addresses and pids";
  ASSERT_EQ(*pair.client.write(bytes_of(text)), text.size());
  pair.note(carry(pair.client, pair.server));
  const auto plain = bytes_of(text).first(8);
  EXPECT_EQ(std::search(pair.seen.begin(), pair.seen.end(), plain.begin(), plain.end()),
            pair.seen.end());
  const auto key = key_of(1);
  const auto start = key.bytes().first(8);
  EXPECT_EQ(std::search(pair.seen.begin(), pair.seen.end(), start.begin(), start.end()),
            pair.seen.end());
}

TEST(TlsSession, EndsWhereTheKeysDiffer) {
  Pair pair = Pair::make(key_of(1), key_of(2));
  const auto shaken = pair.shake();
  ASSERT_FALSE(shaken);
  EXPECT_EQ(shaken.error().code, Errc::protocol);
  EXPECT_FALSE(pair.server.established());
  EXPECT_FALSE(pair.server.read(std::span<std::byte>()).has_value()) << "an error is final";
}

TEST(TlsSession, EndsWhereTheServerDoesNotExpectTheClient) {
  TlsSession client = *TlsSession::client("link 4 5", key_of(1));
  TlsSession server = *TlsSession::server(knows("link 3 5", key_of(1)));
  ASSERT_EQ(*client.handshake(), Progress::pending);
  carry(client, server);
  EXPECT_EQ(server.handshake().error().code, Errc::protocol);
  carry(server, client);
  EXPECT_EQ(client.handshake().error().code, Errc::protocol) << "the server says so";
}

// A greeting that was recorded is shown again: whoever does so cannot go on.
TEST(TlsSession, DoesNotTakeARecordedConversationForANewOne) {
  Pair pair = Pair::make();
  Bytes recorded;
  for (int i = 0; i < 4; ++i) {
    (void)pair.client.handshake();
    const Bytes more = carry(pair.client, pair.server);
    recorded.insert(recorded.end(), more.begin(), more.end());
    (void)pair.server.handshake();
    carry(pair.server, pair.client);
  }
  ASSERT_TRUE(pair.server.established());
  (void)pair.client.write(bytes_of("abort"));
  const Bytes more = carry(pair.client, pair.server);
  recorded.insert(recorded.end(), more.begin(), more.end());

  TlsSession fresh = *TlsSession::server(knows("link 3 5", key_of(1)));
  std::span<const std::byte> rest(recorded);
  Bytes into(64);
  bool refused = false;
  while (!rest.empty() && !refused) {
    rest = rest.subspan(fresh.feed(rest));
    const auto got = fresh.read(into);
    refused = !got;
    if (got) {
      EXPECT_EQ(*got, 0u);
    }
  }
  EXPECT_TRUE(refused);
  EXPECT_FALSE(fresh.established());
}

TEST(TlsSession, RefusesARecordThatWasChangedRepeatedOrLeftOut) {
  for (const std::string_view how : {"changed", "repeated", "left out"}) {
    Pair pair = Pair::make();
    ASSERT_TRUE(pair.shake());
    (void)pair.client.write(bytes_of("one"));
    Bytes one(pair.client.unsent().begin(), pair.client.unsent().end());
    pair.client.sent(one.size());
    (void)pair.client.write(bytes_of("two"));
    const Bytes two(pair.client.unsent().begin(), pair.client.unsent().end());
    if (how == "changed") one.back() ^= std::byte{1};
    Bytes got(3);
    if (how == "repeated") {
      pair.server.feed(one);
      ASSERT_EQ(*pair.server.read(got), 3u);
    }
    pair.server.feed(how == "left out" ? two : one);
    const auto read = pair.server.read(got);
    ASSERT_FALSE(read) << how;
    EXPECT_EQ(read.error().code, Errc::protocol) << how;
  }
}

TEST(TlsSession, EndsOverGarbageAndKeepsNoMoreOfItThanItsBuffer) {
  for (std::uint32_t round = 0; round < 200; ++round) {
    TlsSession server = *TlsSession::server(knows("link 3 5", key_of(1)));
    Bytes garbage = random_bytes(200'000, round);
    const Bytes greeting{std::byte{22}, std::byte{3}, std::byte{1}, std::byte{0x40}};
    if (round % 2 == 1) std::copy(greeting.begin(), greeting.end(), garbage.begin());
    std::size_t fed = 0;
    bool ended = false;
    while (fed < garbage.size() && !ended) {
      const std::size_t some = server.feed(std::span(garbage).subspan(fed));
      fed += some;
      ended = !server.handshake();
      ASSERT_TRUE(ended || some > 0 || fed == garbage.size());
    }
    EXPECT_TRUE(ended);
    EXPECT_LE(fed, 40'000u);
  }
}

TEST(TlsSession, IsTheSameWhereverTheWireCutsItsBytes) {
  std::mt19937 random(11);
  Pair pair = Pair::make();
  const Bytes message = random_bytes(40'000, 3);
  Bytes got(message.size());
  std::size_t written = 0;
  std::size_t read = 0;
  const auto dribble = [&](TlsSession& from, TlsSession& to) {
    const std::size_t some = std::min<std::size_t>(from.unsent().size(), 1 + random() % 700);
    from.sent(to.feed(from.unsent().first(some)));
  };
  for (int i = 0; i < 2000 && read < got.size(); ++i) {
    written += *pair.client.write(std::span<const std::byte>(message).subspan(written));
    dribble(pair.client, pair.server);
    read += *pair.server.read(std::span(got).subspan(read));
    dribble(pair.server, pair.client);
    (void)pair.client.handshake();
  }
  EXPECT_EQ(got, message);
}

TEST(TlsSession, TakesNoMorePlaintextThanItsBufferHasRoomFor) {
  Pair pair = Pair::make();
  ASSERT_TRUE(pair.shake());
  const Bytes message(1 << 20);
  const std::size_t first = *pair.client.write(message);
  EXPECT_GE(first, std::size_t{16} << 10);
  EXPECT_LE(first, std::size_t{32} << 10);
  EXPECT_EQ(*pair.client.write(message), 0u);
}

// Each thousandth of a key's records here, as each eight millionth outside.
TEST(TlsSession, GoesOnUnderANewKeyBeforeOneIsUsedUp) {
  Pair pair = Pair::make(key_of(1), key_of(1), {.records_a_key = 3});
  ASSERT_TRUE(pair.shake());
  const Bytes message = random_bytes(400'000, 5);
  EXPECT_EQ(pass(pair.client, pair.server, message), message);
  EXPECT_EQ(pass(pair.server, pair.client, message), message);
}

TEST(TlsSession, SaysThatThePeerHasClosedAfterWhatItSentBefore) {
  Pair pair = Pair::make();
  ASSERT_TRUE(pair.shake());
  (void)pair.client.write(bytes_of("bye"));
  pair.client.close();
  carry(pair.client, pair.server);
  Bytes got(8);
  EXPECT_EQ(*pair.server.read(got), 3u);
  EXPECT_EQ(pair.server.read(got).error().code, Errc::peer_lost);
}

// What was done ahead fits the last record's size and key.
TEST(TlsSession, CarriesWhateverSizeAndKeyComesAfterItPrepared) {
  TlsSession::Options options;
  options.records_a_key = 3;
  Pair pair = Pair::make(key_of(1), key_of(1), options);
  ASSERT_TRUE(pair.shake());
  for (const std::size_t size : {8U, 8U, 8U, 9U, 8U, 4000U, 4000U, 1U, 1U, 1U}) {
    pair.client.prepare();
    pair.server.prepare();
    const Bytes message = random_bytes(size, 3);
    EXPECT_EQ(pass(pair.client, pair.server, message), message) << size;
  }
}

TEST(TlsSession, RefusesAChangedHeaderThoughItPreparedForTheRightOne) {
  Pair pair = Pair::make();
  ASSERT_TRUE(pair.shake());
  const Bytes message = random_bytes(64, 4);
  ASSERT_EQ(pass(pair.client, pair.server, message), message);
  pair.server.prepare();
  ASSERT_EQ(*pair.client.write(message), message.size());
  Bytes record(pair.client.unsent().begin(), pair.client.unsent().end());
  record[2] ^= std::byte{1};  // of the version, which nothing but the tag holds
  ASSERT_EQ(pair.server.feed(record), record.size());
  Bytes into(64);
  const auto got = pair.server.read(into);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::protocol);
}

}  // namespace
}  // namespace gdrx
