// SPDX-License-Identifier: Apache-2.0
// How peers come and go.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/tcp/pair.hpp"

namespace gdrx::test {
namespace {

TEST(TcpPeers, OfTwoMindsAboutEncryptionAreBothNamed) {
  const auto plain = open_tcp(Rank{0}, tcp_config(true));
  const auto secret = open_tcp(Rank{1}, tcp_config(false));
  const auto refused = plain->connect(Rank{1}, secret->address());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "rank 0 has GDRX_TCP_PLAIN=1 and rank 1 has GDRX_TCP_PLAIN=0: set the same on every "
            "rank");
}

// An address alone is not enough where the job has a secret.
TEST(TcpPeers, OfTwoSecretsDoNotMeet) {
  const std::string path = testing::TempDir() + "tcp-secret-" + std::to_string(getpid());
  std::ofstream(path) << "sixteen bytes and more";
  chmod(path.c_str(), 0600);
  Config config = tcp_config(false);
  config.secret_file = path;
  const auto with = open_tcp(Rank{1}, config);
  const auto without = open_tcp(Rank{0}, tcp_config(false));
  const auto endpoint = without->connect(Rank{1}, with->address()).value();
  std::optional<Error> error;
  EXPECT_TRUE(drive({with.get()}, [&] {
    std::array<Completion, 4> some;
    const auto polled = without->poll(some);
    if (!polled) error = polled.error();
    return error.has_value();
  }));
  unlink(path.c_str());
  ASSERT_TRUE(error);
  EXPECT_NE(error->what.find("GDRX_SECRET_FILE"), std::string::npos) << error->what;
}

TEST(TcpPeers, ThatCallEachOtherAtOnceHaveOneConnection) {
  for (int round = 0; round < 10; ++round) {
    TcpPair pair(false);
    const auto back_region = pair.sender->allocate_memory(4096).value();
    const auto back = pair.receiver->connect(Rank{0}, pair.sender->address()).value();
    const RemoteRegionId there = pair.import();
    const RemoteRegionId here = back->import_region(back_region->export_key()).value();
    const Blob payload(100, std::byte{0x11});
    ASSERT_TRUE(pair.endpoint->post(write_of(payload, there, 0)));
    ASSERT_TRUE(back->post(write_of(payload, here, 0)));
    ASSERT_TRUE(drive({pair.sender.get(), pair.receiver.get()}, [&] {
      return pair.region->bytes()[0] == std::byte{0x11} &&
             back_region->bytes()[0] == std::byte{0x11};
    })) << round;
  }
}

// Their first writes come with the last word of the handshake: nothing follows that would wake.
TEST(TcpPeers, OfACrowdAreHeardThoughTheyWriteAtOnce) {
  constexpr int kCrowd = 4;
  const auto hears = open_tcp(Rank{kCrowd}, tcp_config(false));
  const auto region = hears->allocate_memory(4096).value();
  const Blob payload(100, std::byte{0x11});
  std::array<std::shared_ptr<Device>, kCrowd> crowd;
  std::array<std::unique_ptr<Endpoint>, kCrowd> endpoints;
  for (int i = 0; i < kCrowd; ++i) {
    const auto at = static_cast<std::size_t>(i);
    crowd[at] = open_tcp(Rank{i}, tcp_config(false));
    endpoints[at] = crowd[at]->connect(Rank{kCrowd}, hears->address()).value();
    const RemoteRegionId there = endpoints[at]->import_region(region->export_key()).value();
    ASSERT_TRUE(endpoints[at]->post(write_of(payload, there, at * 100)));
  }
  std::size_t heard = 0;
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(5));
  while (heard < kCrowd && !deadline.passed(steady_clock().now())) {
    std::array<Completion, 8> some;
    heard += hears->poll(some).value();
    // Time enough for all that they say to this look.
    const Deadline pause = Deadline::after(steady_clock(), std::chrono::milliseconds(2));
    while (!pause.passed(steady_clock().now())) {
      for (const auto& device : crowd) ASSERT_TRUE(device->poll(some));
    }
  }
  EXPECT_EQ(heard, kCrowd);
}

// A child that holds a device and is connected, and is killed.
TEST(TcpPeers, ThatAreKilledAreNamedAtOnce) {
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(to_parent), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto device = open_tcp(Rank{1}, tcp_config(false));
    const auto region = device->allocate_memory(4096).value();
    const Blob address = device->address();
    const Blob key = region->export_key();
    (void)!write(to_parent[1], address.data(), address.size());
    (void)!write(to_parent[1], key.data(), key.size());
    std::array<Completion, 4> some;
    while (device->poll(some)) {
    }
    _exit(0);
  }
  Blob address(64), key(24);
  ASSERT_EQ(read(to_parent[0], address.data(), address.size()), 64);
  ASSERT_EQ(read(to_parent[0], key.data(), key.size()), 24);
  const auto device = open_tcp(Rank{0}, tcp_config(false));
  const auto endpoint = device->connect(Rank{1}, address).value();
  const RemoteRegionId remote = endpoint->import_region(key).value();
  const Blob payload(64, std::byte{0x77});
  ASSERT_TRUE(endpoint->post(write_of(payload, remote, 0)));
  std::size_t written = 0;
  ASSERT_TRUE(drive({}, [&] {
    std::array<Completion, 4> some;
    written += device->poll(some).value();
    return written == 1;
  }));
  kill(child, SIGKILL);
  const Instant killed = steady_clock().now();
  std::optional<Error> error;
  EXPECT_TRUE(drive({}, [&] {
    std::array<Completion, 4> some;
    const auto polled = device->poll(some);
    if (!polled) error = polled.error();
    return error.has_value();
  }));
  EXPECT_LT(steady_clock().now() - killed, std::chrono::seconds(1));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::peer_lost);
  EXPECT_NE(error->what.find("rank 1"), std::string::npos) << error->what;
  waitpid(child, nullptr, 0);
  for (const int fd : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(fd);
}

// As a data loader's worker is: it lives on with what it was forked with, or ends in order.
void be_a_child(std::optional<TcpPair>& pair, bool stays) {
  if (stays) usleep(300'000);
  pair.reset();
  _exit(0);
}

TEST(TcpPeers, WhoForkAmidTheirHandshakeMeetAllTheSame) {
  constexpr int kRounds = 24;  // the handshake is over after fewer
  std::vector<pid_t> children;
  for (int round = 0; round < kRounds; ++round) {
    std::optional<TcpPair> pair(std::in_place, false);
    const Blob payload = pattern(100'000, round);
    ASSERT_TRUE(pair->endpoint->post(write_of(payload, pair->import(), 0)));
    std::array<Completion, 4> some;
    for (int i = 0; i < round; ++i) {
      ASSERT_TRUE((i % 2 == 0 ? pair->sender : pair->receiver)->poll(some));
      usleep(100);
    }
    const pid_t child = fork();
    if (child == 0) be_a_child(pair, round % 2 == 0);
    children.push_back(child);
    if (round % 2 == 1) waitpid(child, nullptr, 0);
    EXPECT_TRUE(drive({pair->sender.get(), pair->receiver.get()}, [&] {
      return std::ranges::equal(pair->region->bytes().first(payload.size()), payload);
    })) << round;
    EXPECT_TRUE(pair->sender->poll(some) && pair->receiver->poll(some)) << round;
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
}

TEST(TcpPeers, ThatLeaveInOrderAreNobodysFailure) {
  TcpPair pair(false);
  const auto back = pair.receiver->connect(Rank{0}, pair.sender->address()).value();
  const Blob payload(64, std::byte{0x77});
  const RemoteRegionId remote = pair.import();
  const auto arrived = [&](std::size_t at) {
    return drive({pair.sender.get(), pair.receiver.get()},
                 [&] { return pair.region->bytes()[at] == std::byte{0x77}; });
  };
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, remote, 0)));
  ASSERT_TRUE(arrived(0));
  ASSERT_TRUE(pair.endpoint->post(write_of(payload, remote, 100)));
  pair.endpoint.reset();  // sends what was posted
  std::array<Completion, 4> some;
  EXPECT_TRUE(arrived(100));
  pair.sender.reset();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pair.receiver->poll(some));
  const RemoteRegionId any = back->import_region(pair.region->export_key()).value();
  const auto posted = back->post(write_of(payload, any, 0));
  ASSERT_FALSE(posted);
  EXPECT_EQ(posted.error().what, "rank 0 has left");
}

}  // namespace
}  // namespace gdrx::test
