// SPDX-License-Identifier: Apache-2.0
// Two hosts that share a secret, and everybody else.
#include "tools/perf/trust.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace gdrx::perf {
namespace {

using namespace std::chrono_literals;

Deadline soon() { return Deadline::after(steady_clock(), 10s); }
Secret secret(std::string_view text) { return Secret(std::as_bytes(std::span(text))); }

struct Both {
  Result<void> leader;
  Result<void> server;
};

Both meet(const Secret& of_leader, const Secret& of_server) {
  Both both;
  const auto listener = Listener::open(0);
  EXPECT_TRUE(listener) << listener.error().what;
  {
    const std::jthread server([&] {
      const auto channel = listener->accept();
      both.server = trust(*channel, of_server, false, soon());
    });
    const auto channel = Channel::connect("127.0.0.1", listener->port());
    EXPECT_TRUE(channel) << channel.error().what;
    both.leader = trust(*channel, of_leader, true, soon());
  }
  return both;
}

std::string what(const Result<void>& of) { return of ? std::string() : of.error().what; }

TEST(Trust, IsWhereBothHaveTheSecretOrNoneHasOne) {
  for (const Secret& each : {Secret(), secret("a secret of sixteen bytes")}) {
    const Both both = meet(each, each);
    EXPECT_TRUE(both.leader) << what(both.leader);
    EXPECT_TRUE(both.server) << what(both.server);
  }
}

TEST(Trust, IsNotWhereTheSecretsDiffer) {
  const Both both = meet(secret("a secret of sixteen bytes"), secret("another one, as long"));
  for (const auto& side : {both.leader, both.server}) {
    ASSERT_FALSE(side);
    EXPECT_EQ(side.error().code, Errc::protocol);
    EXPECT_NE(side.error().what.find("another one on the other host"), std::string::npos);
  }
}

TEST(Trust, IsNotWhereOneHasNoneAndEachIsToldWhich) {
  const Both bold = meet(Secret(), secret("a secret of sixteen bytes"));
  EXPECT_NE(what(bold.leader).find("on the other host and not here"), std::string::npos);
  EXPECT_NE(what(bold.server).find("here and not on the other host"), std::string::npos);
  const Both wary = meet(secret("a secret of sixteen bytes"), Secret());
  EXPECT_NE(what(wary.leader).find("here and not on the other host"), std::string::npos);
  EXPECT_NE(what(wary.server).find("on the other host and not here"), std::string::npos);
}

// Somebody without the secret says back what the server says: its number and its answer.
TEST(Trust, IsNotGivenToAnEcho) {
  const auto listener = Listener::open(0);
  ASSERT_TRUE(listener);
  Result<void> server;
  std::size_t echoed = 0;
  {
    const std::jthread serving([&] {
      const auto channel = listener->accept();
      server = trust(*channel, secret("a secret of sixteen bytes"), false, soon());
    });
    SocketAddress address = loopback_address();
    address.port = listener->port();
    const auto stranger = Socket::connect(address, soon());
    ASSERT_TRUE(stranger);
    std::uint32_t length = 0;
    while (stranger->receive_exact(std::as_writable_bytes(std::span(&length, 1)), soon())) {
      std::string text(ntohl(length), ' ');
      ASSERT_TRUE(stranger->receive_exact(std::as_writable_bytes(std::span(text)), soon()));
      if (text.starts_with('-')) break;
      ASSERT_TRUE(stranger->send_all(std::as_bytes(std::span(&length, 1)), soon()));
      ASSERT_TRUE(stranger->send_all(std::as_bytes(std::span(text)), soon()));
      ++echoed;
    }
  }
  EXPECT_EQ(echoed, 3u) << "hello, both have a secret, the answer";
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, Errc::protocol) << what(server);
}

TEST(Trust, AsksSomethingElseEachTime) {
  std::set<std::string> hellos;
  for (int round = 0; round < 3; ++round) {
    const auto listener = Listener::open(0);
    ASSERT_TRUE(listener);
    const std::jthread serving([&] {
      const auto channel = listener->accept();
      const auto ended = trust(*channel, secret("a secret of sixteen bytes"), false, soon());
      EXPECT_FALSE(ended);
    });
    const auto channel = Channel::connect("127.0.0.1", listener->port());
    ASSERT_TRUE(channel);
    const auto hello = channel->agree(std::string("gdrx-trust-1 secret 12"), soon());
    ASSERT_TRUE(hello) << hello.error().what;
    hellos.insert(*hello);
  }
  EXPECT_EQ(hellos.size(), 3u);
}

}  // namespace
}  // namespace gdrx::perf
