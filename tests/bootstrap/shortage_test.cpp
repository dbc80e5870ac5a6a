// SPDX-License-Identifier: Apache-2.0
// Sockets that have room, as poll() says, and take nothing.
#include "transport/bootstrap/shortage.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

namespace gdrx {
namespace {

using namespace std::chrono_literals;

class ShortOfRoom : public testing::Test {
 protected:
  ShortOfRoom() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    socket_.emplace(SecureSocket::client_here(Socket(ends[0]), "root", *Key::random()));
    other_ = Socket(ends[1]);
  }
  // How long it is left alone now; nothing: poll() is to wait for it.
  std::optional<Duration> pause() {
    Duration longest = 1s;
    if (shortage_.events(true, *socket_, longest) != 0) return {};
    return longest;
  }
  std::optional<SecureSocket> socket_;
  Socket other_;
  Shortage shortage_;
};

TEST_F(ShortOfRoom, IsTriedMoreSeldomAsTimePassesAndNotAsOthersWakeTheThread) {
  for (int i = 0; i < 1000; ++i) EXPECT_LE(pause().value(), Shortage::kFirstPause * 8);
  Duration longest{};
  for (const Instant end = steady_clock().now() + 400ms; steady_clock().now() < end;) {
    const Duration now = pause().value();
    longest = std::max(longest, now);
    std::this_thread::sleep_for(now);
  }
  EXPECT_GT(longest, Shortage::kLongestPause / 2);
  EXPECT_LE(longest, Shortage::kLongestPause);
}

TEST_F(ShortOfRoom, IsNotWhatHasJustTakenSome) {
  EXPECT_TRUE(pause());
  ASSERT_TRUE(socket_->handshake());  // says the first of it
  EXPECT_FALSE(pause());
  EXPECT_TRUE(pause());
}

}  // namespace
}  // namespace gdrx
