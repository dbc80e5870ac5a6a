// SPDX-License-Identifier: Apache-2.0
// Two hosts that share a secret, and everybody else who finds the port.
#include "tools/perf/control_channel.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gdrx::perf {
namespace {

using namespace std::chrono_literals;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }
Secret secret(std::string_view text) { return *Secret::of(std::as_bytes(std::span(text))); }

struct Both {
  Result<std::string> leader = fail(Errc::internal, "not run");
  Result<std::string> server = fail(Errc::internal, "not run");
};

Both meet(const Secret& of_leader, const Secret& of_server) {
  Both both;
  auto listener = Listener::open(loopback_address(), of_server);
  EXPECT_TRUE(listener) << listener.error().what;
  std::jthread server([&] {
    const auto channel = listener->accept(in(1s));
    both.server = channel ? channel->agree(std::string("from server"), in(5s))
                          : tl::unexpected(channel.error());
  });
  const auto channel = Channel::connect("127.0.0.1", listener->port(), of_leader);
  both.leader = channel ? channel->agree(std::string("from leader"), in(5s))
                        : tl::unexpected(channel.error());
  server.join();
  return both;
}

SocketAddress place_of(const Listener& listener) { return listener.address(); }

TEST(Channel, IsWhereBothHaveTheSecretOrNoneHasOne) {
  for (const Secret& each : {Secret(), secret("a secret of sixteen bytes")}) {
    const Both both = meet(each, each);
    EXPECT_EQ(both.leader.value_or(""), "from server");
    EXPECT_EQ(both.server.value_or(""), "from leader");
  }
}

TEST(Channel, IsNotWhereTheSecretsDifferOrOneHasNone) {
  const Secret one = secret("a secret of sixteen bytes");
  const Secret other = secret("another one, as long");
  for (const auto& [leader, server] :
       std::vector<std::pair<Secret, Secret>>{{one, other}, {one, Secret()}, {Secret(), one}}) {
    const Both both = meet(leader, server);
    EXPECT_EQ(both.server.error().code, Errc::timeout);
    ASSERT_FALSE(both.leader);
    EXPECT_EQ(both.leader.error().code, Errc::protocol);
    EXPECT_NE(both.leader.error().what.find("GDRX_SECRET_FILE"), std::string::npos);
  }
}

// Moves bytes both ways between two sockets until one ends.
void relay(const Socket& one, const Socket& other) {
  std::array<std::byte, 4096> piece;
  for (const Deadline end = in(3s); !end.passed(steady_clock().now());) {
    for (const auto& [from, to] : {std::pair(&one, &other), std::pair(&other, &one)}) {
      const auto some = from->receive_some(piece);
      if (!some || !to->send_all(std::span(piece).first(*some), end)) return;
    }
    std::this_thread::sleep_for(1ms);
  }
}

// The leader wants to speak to the relay's address. Who listens there passes all of it on to a host
// that has the secret, too.
TEST(Channel, IsNotWhereSomebodyPassesTheGreetingOnToAnotherHost) {
  const Secret ours = secret("a secret of sixteen bytes");
  auto listener = Listener::open(loopback_address(), ours);
  const auto impostor = Socket::listen(loopback_address());
  ASSERT_TRUE(listener && impostor);
  Result<Channel> served = fail(Errc::internal, "not run");
  {
    const std::jthread server([&] { served = listener->accept(in(1s)); });
    const std::jthread between([&] {
      Socket from;
      while (!from.valid()) from = *impostor->accept();
      relay(from, *Socket::connect(place_of(*listener), in(3s)));
    });
    const auto channel = Channel::connect("127.0.0.1", impostor->local_address()->port, ours);
    EXPECT_FALSE(channel);
  }
  EXPECT_FALSE(served);
}

// An impostor takes a connection: what it hears is no proof of the secret that it could use, and
// nothing of what would be said.
TEST(Channel, SaysNothingToAHostThatHasNotShownTheSecret) {
  const auto impostor = Socket::listen(loopback_address());
  ASSERT_TRUE(impostor);
  std::string heard;
  {
    const std::jthread listening([&] {
      Socket from;
      while (!from.valid()) from = *impostor->accept();
      std::array<std::byte, 4096> piece;
      for (const Deadline end = in(300ms); !end.passed(steady_clock().now());) {
        const auto some = from.receive_some(piece);
        if (!some) break;
        heard.append(reinterpret_cast<const char*>(piece.data()), *some);
        if (*some == 0) std::this_thread::sleep_for(1ms);
      }
    });
    const auto channel = Channel::connect("127.0.0.1", impostor->local_address()->port,
                                          secret("a secret of sixteen bytes"));
    EXPECT_FALSE(channel);
  }
  EXPECT_NE(heard.find("gdrx-perf-2"), std::string::npos) << "who is asked for";
  EXPECT_LT(heard.size(), 600u) << "one greeting";
}

// Strangers that say nothing, garbage, or half a greeting.
TEST(Listener, ServesWhoHoldsTheKeyBesideSilentAndNoisyStrangers) {
  const Secret ours = secret("a secret of sixteen bytes");
  auto listener = Listener::open(loopback_address(), ours);
  ASSERT_TRUE(listener);
  std::vector<Socket> strangers;
  for (int i = 0; i < 30; ++i) {
    strangers.push_back(*Socket::connect(place_of(*listener), in(3s)));
    if (i % 3 == 0) continue;
    const std::string noise =
        i % 3 == 1 ? "GET / HTTP/1.1\r\n\r\n" : std::string("\x16\x03\x01\x02", 4);
    (void)strangers.back().send_all(std::as_bytes(std::span(noise)), in(3s));
  }
  const auto start = std::chrono::steady_clock::now();
  Result<Channel> served = fail(Errc::internal, "not run");
  {
    const std::jthread server([&] { served = listener->accept(in(10s)); });
    const auto channel = Channel::connect("127.0.0.1", listener->port(), ours);
    EXPECT_TRUE(channel) << channel.error().what;
  }
  EXPECT_TRUE(served);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Listener, ListensOnItsInterfaceAlone) {
  SocketAddress two = loopback_address();
  two.ip[3] = 2;
  auto listener = Listener::open(two);
  ASSERT_TRUE(listener);
  SocketAddress one = loopback_address();
  one.port = listener->port();
  const auto elsewhere = Socket::connect(one, in(50ms));
  EXPECT_FALSE(elsewhere);
  EXPECT_TRUE(Socket::connect(listener->address(), in(3s)));
}

TEST(Listener, TakesAPortOfTheRange) {
  const PortRange ports{28117, 28119};
  std::vector<Listener> open;
  for (int i = 0; i < 3; ++i) {
    auto listener = Listener::open(loopback_address(), {}, ports);
    ASSERT_TRUE(listener) << listener.error().what;
    EXPECT_GE(listener->port(), ports.first);
    EXPECT_LE(listener->port(), ports.last);
    open.push_back(std::move(*listener));
  }
  const auto none = Listener::open(loopback_address(), {}, ports);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find("GDRX_PORT_RANGE=28117-28119"), std::string::npos);
}

TEST(Channel, NamesAHostThatThereIsNot) {
  const auto channel = Channel::connect("no-such-host.invalid", 1);
  ASSERT_FALSE(channel);
  EXPECT_NE(channel.error().what.find("no-such-host.invalid"), std::string::npos);
}

}  // namespace
}  // namespace gdrx::perf
