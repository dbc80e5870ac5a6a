// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/stream.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/secure/session_pair.hpp"

namespace gdrx::tcp {
namespace {

using namespace test;

constexpr std::size_t kRecord = 16 << 10;  // about what a record holds

// A stream whose peer's records are written by hand.
struct Wire {
  Pair pair = Pair::make(key_of(1), key_of(1), Stream::kTls);
  Socket peer;
  std::optional<Stream> stream;

  Wire() {
    EXPECT_TRUE(pair.shake());
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    peer = Socket(ends[0]);
    stream.emplace(Socket(ends[1]), std::move(pair.server));
  }
  test::Bytes sealed(const test::Bytes& message) {
    EXPECT_EQ(*pair.client.write(message), message.size());
    const auto unsent = pair.client.unsent();
    return {unsent.begin(), unsent.end()};
  }
  void put(const test::Bytes& wire) {
    EXPECT_EQ(::send(peer.fd(), wire.data(), wire.size(), 0), static_cast<ssize_t>(wire.size()));
  }
};

// All of it comes at once: no event tells of the second record.
TEST(TcpStream, ARecordThatWasChangedBehindAGoodOneEndsIt) {
  Wire wire;
  const test::Bytes message = random_bytes(3 * kRecord, 1);
  test::Bytes sealed = wire.sealed(message);
  sealed[sealed.size() / 2] ^= std::byte{1};
  wire.put(sealed);
  test::Bytes got(message.size());
  const auto first = wire.stream->read(got);
  ASSERT_TRUE(first) << first.error().what;
  ASSERT_GT(*first, 0U);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + static_cast<long>(*first), message.begin()));
  EXPECT_TRUE(wire.stream->has_unread());
  EXPECT_FALSE(wire.stream->dry());
  const auto second = wire.stream->read(std::span(got).subspan(*first));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::protocol);
}

// The peer's end is said after what came before it.
TEST(TcpStream, AnEndBehindWholeRecordsIsSaidNext) {
  Wire wire;
  const test::Bytes message = random_bytes(2 * kRecord, 2);
  ASSERT_EQ(*wire.pair.client.write(message), message.size());
  wire.pair.client.close();
  const auto unsent = wire.pair.client.unsent();
  wire.put({unsent.begin(), unsent.end()});
  test::Bytes got(message.size() + 100);
  ASSERT_EQ(*wire.stream->read(got), message.size());
  const auto next = wire.stream->read(std::span(got).subspan(message.size()));
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Errc::peer_lost);
}

}  // namespace
}  // namespace gdrx::tcp
