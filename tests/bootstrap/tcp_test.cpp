// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/tcp_bootstrap.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "transport/bootstrap/root.hpp"

namespace gdrx {
namespace {

using namespace std::chrono_literals;

Deadline in(Duration time) { return Deadline::after(steady_clock(), time); }

Blob blob_of(int rank) {
  return Blob(static_cast<std::size_t>(rank * 37), static_cast<std::byte>(rank));
}

class Root : public testing::Test {
 protected:
  Root() : root_(std::move(*BootstrapRoot::start(loopback_address(), Log()))) {}
  auto join(int rank, int size, Duration time = 10s) {
    return TcpBootstrap::create(root_->id(), Rank{rank}, size, Log(), in(time));
  }
  std::unique_ptr<BootstrapRoot> root_;
};

TEST_F(Root, GathersBlobsOfAnyLengthInSeveralRounds) {
  constexpr int kRanks = 9;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      auto bootstrap = join(rank, kRanks);
      ASSERT_TRUE(bootstrap) << bootstrap.error().what;
      for (int round = 0; round < 3; ++round) {
        const auto all = (*bootstrap)->all_gather(blob_of(rank + round), in(10s));
        ASSERT_TRUE(all) << all.error().what;
        for (int r = 0; r < kRanks; ++r) {
          EXPECT_EQ((*all)[static_cast<std::size_t>(r)], blob_of(r + round));
        }
      }
    });
  }
}

TEST_F(Root, RefusesADoubledRankAndAnotherSizeWithAReason) {
  auto first = join(0, 2);
  ASSERT_TRUE(first);
  const auto doubled = join(0, 2);
  ASSERT_FALSE(doubled);
  EXPECT_NE(doubled.error().what.find("has come already"), std::string::npos);
  const auto other = join(1, 3);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("others say 2"), std::string::npos);
}

TEST_F(Root, RefusesAnIdOfAnotherRoot) {
  const auto forged = make_id_for(root_->id().root);  // right address, wrong nonce
  const auto joined = TcpBootstrap::create(*forged, Rank{0}, 1, Log(), in(5s));
  ASSERT_FALSE(joined);
  EXPECT_NE(joined.error().what.find("does not hold this unique id's key"), std::string::npos);
}

TEST_F(Root, IsNotStalledByStrangers) {
  std::vector<Socket> strangers;
  for (int i = 0; i < 20; ++i) {
    auto socket = Socket::connect(root_->id().root, in(5s));
    ASSERT_TRUE(socket);
    const std::string garbage(static_cast<std::size_t>(i * 10), 'x');
    (void)socket->send_all(std::as_bytes(std::span(garbage)), in(1s));
    strangers.push_back(std::move(*socket));
  }
  auto bootstrap = join(0, 1);
  ASSERT_TRUE(bootstrap) << bootstrap.error().what;
  EXPECT_TRUE((*bootstrap)->all_gather(blob_of(1), in(5s)));
}

TEST_F(Root, GivesUpOnRanksThatDoNotCome) {
  auto bootstrap = join(0, 2);
  ASSERT_TRUE(bootstrap);
  const auto all = (*bootstrap)->all_gather(blob_of(1), in(200ms));
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, Errc::timeout);
}

}  // namespace
}  // namespace gdrx
