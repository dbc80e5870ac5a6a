// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/copy_threads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <vector>

namespace gdrx::net {
namespace {

constexpr std::size_t kBytes = 40'000;  // no whole number of lines

struct Message {
  explicit Message(int seed) : from(kBytes), to(kBytes + 1, std::byte{0x5a}) {
    for (std::size_t i = 0; i < kBytes; ++i) {
      from[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
    }
    job.from = from.data();
    job.to = to.data();
    job.bytes = kBytes;
  }
  bool right() const {
    return std::equal(from.begin(), from.end(), to.begin()) && to.back() == std::byte{0x5a};
  }
  std::vector<std::byte> from, to;
  CopyJob job;
};

TEST(CopyThreads, AreAsManyAsWantedOrAsProcessorsAllow) {
  EXPECT_EQ(CopyThreads::count(5, {}), 5);
  EXPECT_GE(CopyThreads::count(0, {}), 1);
  EXPECT_LE(CopyThreads::count(0, {}),
            std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  EXPECT_EQ(CopyThreads::count(0, {"LOCAL_WORLD_SIZE=100000"}), 1);
}

TEST(CopyThreads, LeaveProcessorsToTheOtherRanksOfTheHost) {
  EXPECT_EQ(CopyThreads::chosen(128, 128, 8), 6);
  EXPECT_EQ(CopyThreads::chosen(32, 32, 2), 6);
  EXPECT_EQ(CopyThreads::chosen(32, 32, 4), 6);
  EXPECT_EQ(CopyThreads::chosen(32, 32, 8), 3);
  EXPECT_EQ(CopyThreads::chosen(32, 32, 32), 1);
  EXPECT_EQ(CopyThreads::chosen(16, 128, 8), 4);  // bound to 16 of their own
  EXPECT_EQ(CopyThreads::chosen(64, 128, 8), 6);  // four to a socket
  EXPECT_EQ(CopyThreads::chosen(16, 32, 8), 3);
  EXPECT_EQ(CopyThreads::chosen(2, 2, 1), 1);
  EXPECT_EQ(CopyThreads::chosen(1, 1, 1000), 1);
}

TEST(CopyThreads, AreOneForAProcessAndGoWithTheLast) {
  EXPECT_EQ(CopyThreads::of_process(1, {}), nullptr);
  auto first = CopyThreads::of_process(3, {});
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(CopyThreads::of_process(2, {}), first);
  const std::weak_ptr<CopyThreads> watched = first;
  first.reset();
  EXPECT_TRUE(watched.expired());
}

// More than there is room for, from several threads: what finds none is copied by who asks.
TEST(CopyThreads, CopyWhatSeveralAskForAtOnce) {
  const auto threads = CopyThreads::of_process(3, {});
  constexpr int kAskers = 3, kRounds = 20, kEach = 150;
  std::vector<std::thread> askers;
  std::vector<int> wrong(kAskers);
  for (int asker = 0; asker < kAskers; ++asker) {
    askers.emplace_back([&, asker] {
      for (int round = 0; round < kRounds; ++round) {
        std::deque<Message> messages;
        for (int i = 0; i < kEach; ++i) {
          threads->start(messages.emplace_back(asker * 1000 + round * 10 + i).job);
          threads->help();
        }
        for (const Message& message : messages) {
          threads->finish(message.job);
          wrong[static_cast<std::size_t>(asker)] += message.right() ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(wrong, std::vector<int>(kAskers));
}

// Who waits begins what a thread that is held up does not.
TEST(CopyThreads, AreHelpedWhereTheyDoNotBegin) {
  const auto threads = CopyThreads::of_process(2, {});
  constexpr std::size_t kMuch = std::size_t{256} << 20;
  const std::vector<std::byte> from(kMuch);
  std::vector<std::byte> to(kMuch);
  CopyJob much;
  much.from = from.data();
  much.to = to.data();
  much.bytes = kMuch;
  threads->start(much);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // now the only one is at it
  Message message(1);
  threads->start(message.job);
  for (int i = 0; i < 1000; ++i) threads->help();
  EXPECT_TRUE(message.job.is_done());
  EXPECT_TRUE(message.right());
  threads->finish(much);
}

// They sleep between messages, and wake up without anybody's help.
TEST(CopyThreads, WakeUp) {
  const auto threads = CopyThreads::of_process(2, {});
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Message message(i);
    threads->start(message.job);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!message.job.is_done() && std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
    }
    ASSERT_TRUE(message.job.is_done());
    EXPECT_TRUE(message.right());
  }
}

}  // namespace
}  // namespace gdrx::net
