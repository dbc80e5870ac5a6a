// SPDX-License-Identifier: Apache-2.0
// How communicators divide a GPU, in one process and in several.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "collectives/gpu/room_of_gpu.hpp"
#include "collectives/gpu/share_page.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kProcessors = 132;
constexpr std::array<std::uint8_t, 16> kGpu{0x4e, 0x56, 1};

std::uint32_t share(const std::vector<ShareRow>& rows) { return share_of(rows, kProcessors); }

TEST(ShareOf, TwoCommunicatorsHaveAllThatTheirCallsHave) {
  EXPECT_EQ(share({}), 0U);
  EXPECT_EQ(share({{7}, {8}}), 0U);
  EXPECT_EQ(share({{7}, {8}, {7}, {8}, {8}}), 0U) << "ranks of one communicator count as one";
  EXPECT_EQ(share({{7, 131}, {8, 131}}), 0U);
}

TEST(ShareOf, ThreeDivideAllButOneMultiprocessor) {
  EXPECT_EQ(share({{7}, {8}, {9}}), 43U);
  EXPECT_EQ(share({{7}, {8}, {9}, {9}}), 32U) << "each rank has a row";
  EXPECT_EQ(share(std::vector<ShareRow>(3, {7})), 0U);
}

TEST(ShareOf, WhatGraphsKeepIsNobodyElses) {
  EXPECT_EQ(share({{7, 101}, {8}, {9}}), 15U);
  EXPECT_EQ(share({{7, 20}, {8}, {9}}), 43U) << "no more than its share is kept";
}

TEST(ShareOf, EachHasAtLeastOneBlock) {
  EXPECT_EQ(share({{7, 131}, {8, 131}, {9}}), 1U);
  EXPECT_EQ(share({{7, ~0U}, {8, ~0U}, {9, ~0U}}), 1U);
  std::vector<ShareRow> many;
  for (std::uint64_t i = 0; i < kShareRows; ++i) many.push_back({i + 1});
  EXPECT_EQ(share(many), 1U);
  for (const int processors : {-1, 0, 1, 2, 3}) {
    EXPECT_EQ(share_of(std::vector<ShareRow>{{7}, {8}, {9}}, processors), 1U);
  }
}

TEST(ShareOf, TheFewestMultiprocessorsThatARankSeesAreDivided) {
  EXPECT_EQ(share({{7, 0, 61}, {8, 0, 132}, {9}}), 20U);
  EXPECT_EQ(share({{7, 0, 500}, {8, 0, 132}, {9}}), 43U);
  EXPECT_EQ(share({{7, 0, 1}, {8, 0, 132}, {9}}), 1U);
}

/// A folder in place of /dev/shm.
class GpuShares : public testing::Test {
 protected:
  GpuShares() {
    std::string name = testing::TempDir() + "gdrx-shares-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~GpuShares() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<GpuShare> take(std::uint64_t communicator) const {
    return GpuShare::take(kGpu, kProcessors, communicator, folder_);
  }
  std::string file() const {
    std::string name = folder_ + "/gdrx-gpu." + std::to_string(geteuid()) + ".";
    for (const std::uint8_t byte : kGpu) {
      constexpr char kDigits[] = "0123456789abcdef";
      name += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return name;
  }
  /// Counts the rows once more: somebody comes and goes.
  void count() const { take(99); }

  /// As a process that is stopped while it changes the page, until the file is closed.
  int shut_door() const {
    const int fd = open(file().c_str(), O_RDWR);
    struct flock door {};
    door.l_type = F_WRLCK;
    door.l_whence = SEEK_SET;
    door.l_start = kShareRows;
    door.l_len = 1;
    EXPECT_EQ(fcntl(fd, F_OFD_SETLK, &door), 0);
    return fd;
  }

  std::string folder_;
};

/// Another process, until it is killed.
class Other {
 public:
  explicit Other(const std::function<void()>& life) {
    int pipes[2] = {-1, -1};
    EXPECT_EQ(pipe(pipes), 0);
    pid_ = fork();
    if (pid_ == 0) {
      life();
      (void)!write(pipes[1], "x", 1);
      while (true) pause();
    }
    char ready = 0;
    EXPECT_EQ(read(pipes[0], &ready, 1), 1);
    close(pipes[0]);
    close(pipes[1]);
  }
  ~Other() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

TEST_F(GpuShares, AThirdCommunicatorIsHeardOfByAllAndSoIsItsEnd) {
  const auto first = take(1), second = take(2);
  EXPECT_EQ(first->most(), 0);
  {
    const auto third = take(3);
    EXPECT_EQ(first->most(), 43);
    EXPECT_EQ(third->most(), 43);
  }
  EXPECT_EQ(first->most(), 0);
  EXPECT_EQ(second->most(), 0);
}

TEST_F(GpuShares, ProcessesThatSeeUnequalPartsOfAGpuHaveTheSameShare) {
  const auto one = take(1), two = take(2);
  const auto part = GpuShare::take(kGpu, 61, 3, folder_);
  EXPECT_EQ(one->most(), 20);
  count();
  EXPECT_EQ(one->most(), 20);
  EXPECT_EQ(part->most(), 20);
}

TEST_F(GpuShares, NothingIsLeftInTheFolder) {
  {
    const auto one = take(1);
    EXPECT_TRUE(std::filesystem::exists(file()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const auto again = take(1);
  EXPECT_TRUE(std::filesystem::exists(file()));
}

TEST_F(GpuShares, NoRowIsOnAFileThatIsGone) {
  const auto late = SharePage::open(folder_, kGpu);
  {
    const auto last = SharePage::open(folder_, kGpu);
    const auto row = last->add(1, kProcessors);
    ASSERT_TRUE(row);
    last->remove(*row, kProcessors);
  }
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_FALSE(late->add(2, kProcessors)) << "nobody else would find it";
  EXPECT_TRUE(late->is_gone());
}

TEST_F(GpuShares, WhoComesAfterSomebodyRemovedTheFileIsFoundByAll) {
  auto before = take(1);
  std::filesystem::remove(file());
  const auto one = take(1), two = take(3);
  std::shared_ptr<GpuShare> its;
  const Other third([&] { its = take(4); });
  EXPECT_EQ(one->most(), 43);
  before.reset();
  EXPECT_TRUE(std::filesystem::exists(file()));
}

TEST_F(GpuShares, ProcessesDivideAGpuAndWhoIsKilledHasNoMore) {
  const auto one = take(1);
  std::shared_ptr<GpuShare> its;
  Other second([&] { its = take(2); });
  EXPECT_EQ(one->most(), 0);
  Other third([&] { its = take(3); });
  EXPECT_EQ(one->most(), 43);
  third.end();
  count();
  EXPECT_EQ(one->most(), 0);
}

TEST_F(GpuShares, CallsCountNowAndThen) {
  const auto one = take(1), two = take(2);
  std::shared_ptr<GpuShare> its;
  Other third([&] { its = take(3); });
  EXPECT_EQ(one->most(), 43);
  third.end();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(one->most(), 0);
}

TEST_F(GpuShares, ACallDoesNotWaitForAStoppedProcessAtTheDoor) {
  const auto one = take(1), two = take(2), three = take(3);
  const int fd = shut_door();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(one->most(), 43);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(100));
  close(fd);
}

TEST_F(GpuShares, WhoFindsTheDoorShutHasOneBlockUntilItHasARow) {
  const auto one = take(1), two = take(2);
  const int fd = shut_door();
  const auto late = take(3);
  EXPECT_EQ(late->most(), 1);
  EXPECT_EQ(one->most(), 0);
  close(fd);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(late->most(), 43);
  EXPECT_EQ(one->most(), 43);
}

TEST_F(GpuShares, WhoFindsNoFreeRowHasOneBlock) {
  std::vector<std::shared_ptr<GpuShare>> all;
  for (std::uint64_t i = 0; i < kShareRows; ++i) all.push_back(take(i + 1));
  const auto late = take(1000);
  EXPECT_EQ(late->most(), 1);
  all.clear();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  EXPECT_EQ(late->most(), 0) << "it has a row, and none is beside it";
  const auto two = take(2), three = take(3);
  EXPECT_EQ(late->most(), 43);
}

TEST_F(GpuShares, AChildOfForkHoldsNoRow) {
  const auto one = take(1), two = take(2);
  int pipes[2] = {-1, -1};
  ASSERT_EQ(pipe(pipes), 0);
  pid_t orphan = 0;
  {
    std::shared_ptr<GpuShare> its;
    const Other parent([&] {
      its = take(3);
      if (fork() != 0) return;
      its.reset();  // a copy: the row is its parent's
      const pid_t self = getpid();
      (void)!write(pipes[1], &self, sizeof self);
      while (true) pause();
    });
    ASSERT_EQ(read(pipes[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
    count();
    EXPECT_EQ(one->most(), 43) << "the parent lives";
  }
  count();
  EXPECT_EQ(one->most(), 0) << "its child holds nothing";
  kill(orphan, SIGKILL);
}

TEST_F(GpuShares, WhatAGraphKeepsEndsWithIt) {
  const auto one = take(1), two = take(2), three = take(3);
  auto kept = std::make_unique<GpuShare::Kept>(one, 101);
  EXPECT_EQ(two->most(), 15);
  kept->raise(131);
  EXPECT_EQ(two->most(), 1);
  kept.reset();
  EXPECT_EQ(two->most(), 43);
}

TEST_F(GpuShares, WhatIsKeptWithoutAGraphEndsWithItsCommunicator) {
  auto one = take(1);
  const auto two = take(2);
  one->keep(101);
  const auto three = take(3), four = take(4);
  EXPECT_EQ(one->most(), 101);
  EXPECT_EQ(two->most(), 10);
  one.reset();
  EXPECT_EQ(two->most(), 43);
}

TEST_F(GpuShares, WhatIsKeptIsSaidToWhoComesAtTheSameTime) {
  const auto one = take(1), two = take(2);
  const int fd = shut_door();
  std::thread keeps([&] { one->keep(101); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ShareRow row;
  ASSERT_EQ(pread(fd, &row, sizeof row, offsetof(SharePageLayout, rows)), ssize_t{sizeof row});
  EXPECT_EQ(row.kept, 0U) << "who has the door counts what it has read";
  close(fd);
  keeps.join();
  const auto three = take(3);
  EXPECT_EQ(two->most(), 15);
}

TEST_F(GpuShares, AGraphThatOutlivesItsCommunicatorKeepsNothing) {
  auto one = take(1);
  const auto two = take(2), three = take(3);
  auto kept = std::make_unique<GpuShare::Kept>(one, 20);
  EXPECT_EQ(two->most(), 43);
  one.reset();
  EXPECT_EQ(two->most(), 0);
  kept->raise(30);
  kept.reset();
  EXPECT_EQ(two->most(), 0);
}

TEST_F(GpuShares, AFileThatIsNoPageIsLeftAloneAndTheProcessDividesByItself) {
  for (const bool large : {false, true}) {
    const int fd = open(file().c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    const std::string text(large ? sizeof(SharePageLayout) : 100, 'x');
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    const auto one = take(1), two = take(2), three = take(3);
    EXPECT_EQ(one->most(), 43);
    std::string found(text.size(), ' ');
    EXPECT_EQ(pread(fd, found.data(), found.size(), 0), static_cast<ssize_t>(found.size()));
    EXPECT_EQ(found, text);
    close(fd);
  }
}

TEST_F(GpuShares, AFileThatOthersMayWriteIsNotTaken) {
  const int fd = open(file().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(fchmod(fd, 0666), 0);
  const auto one = take(1), two = take(2), three = take(3);
  EXPECT_EQ(one->most(), 43);
  struct stat found {};
  ASSERT_EQ(fstat(fd, &found), 0);
  EXPECT_EQ(found.st_size, 0);
  close(fd);
}

TEST_F(GpuShares, WhateverStandsInThePageIsBounded) {
  const auto one = take(1), two = take(2), three = take(3);
  EXPECT_EQ(one->most(), 43);
  const int fd = open(file().c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  const std::vector<std::uint32_t> noise(sizeof(SharePageLayout) / 4 - 3, 0xffffffff);
  ASSERT_GT(pwrite(fd, noise.data(), noise.size() * 4, 12), 0);
  EXPECT_EQ(one->most(), kProcessors - 1) << "of what stands there";
  count();
  EXPECT_EQ(one->most(), 0) << "rows that nobody has locked are free";
  close(fd);
}

}  // namespace
}  // namespace gdrx::gpu
