// SPDX-License-Identifier: Apache-2.0
#include "base/thread_cpus.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <string>
#include <thread>

#include "base/cpu_list.hpp"

namespace gdrx {
namespace {

namespace fs = std::filesystem;

CpuNumbers chosen(const char* may_use, const std::vector<std::string>& near) {
  std::vector<CpuNumbers> lists;
  for (const std::string& list : near) lists.push_back(cpus_of_list(list));
  return choose_cpus(cpus_of_list(may_use), lists);
}

TEST(ChooseCpus, TakesWhatIsNearOfWhatMayBeUsed) {
  EXPECT_EQ(chosen("0-63", {"32-63"}), cpus_of_list("32-63"));
  EXPECT_EQ(chosen("30-35", {"32-63"}), cpus_of_list("32-35"));
  EXPECT_EQ(chosen("2000-2007", {"2004-2015"}), cpus_of_list("2004-2007")) << "over 1024 CPUs";
}

TEST(ChooseCpus, StaysWhereNothingNearMayBeUsed) {
  EXPECT_TRUE(chosen("0-7", {"32-63"}).empty());
  EXPECT_TRUE(chosen("0-7", {}).empty());
  EXPECT_TRUE(chosen("0-7", {"", ""}).empty());
  EXPECT_TRUE(chosen("", {"0-7"}).empty());
}

TEST(ChooseCpus, LeavesAThreadMoreThanOneCpuWhereThereAreMore) {
  EXPECT_TRUE(chosen("0-8", {"8-15"}).empty());
  EXPECT_TRUE(chosen("8", {"8-15"}).empty()) << "it is there already";
}

TEST(ChooseCpus, TakesWhatIsNearBothAndElseTheFirst) {
  EXPECT_EQ(chosen("0-63", {"0-31", "16-31"}), cpus_of_list("16-31"));
  EXPECT_EQ(chosen("0-63", {"0-31", "32-63"}), cpus_of_list("0-31"));
  EXPECT_EQ(chosen("32-63", {"0-31", "32-47"}), cpus_of_list("32-47"));
}

class CpusNear : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    root_ = fs::path(testing::TempDir()) / fmt::format("gdrx-{}-{}", info->name(), getpid());
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  /// A device's folder whose local_cpulist says that.
  std::string device(const std::string& name, const std::string& text) const {
    fs::create_directories(root_ / name);
    std::ofstream(root_ / name / "local_cpulist") << text;
    return (root_ / name).string();
  }
  fs::path root_;
};

TEST_F(CpusNear, ReadsWhatTheKernelSaysOfADevice) {
  const std::string nic = device("0000:3b:00.0", "0-31,64-95\n");
  EXPECT_EQ(cpus_near({nic}), cpus_of_list("0-31,64-95"));
  fs::create_directory_symlink(nic, root_ / "link");
  EXPECT_EQ(cpus_near({(root_ / "link").string()}), cpus_of_list("0-31,64-95"));
}

TEST_F(CpusNear, AsksThePciDeviceAboveADeviceOfAnotherBus) {
  const std::string card = device("0000:00:03.0", "0-7\n");
  fs::create_directories(card + "/virtio0");
  EXPECT_EQ(cpus_near({card + "/virtio0"}), cpus_of_list("0-7"));
}

TEST_F(CpusNear, AreNearOneOfSeveral) {
  EXPECT_EQ(cpus_near({device("a", "0-3\n"), device("b", "8-11"), (root_ / "none").string()}),
            cpus_of_list("0-3,8-11"));
}

TEST_F(CpusNear, AreNoneWhereTheTextIsNoList) {
  for (const char* text : {"", "\n", "0-", "3-1", "0-3;", "0-3\n4", "x", "-1", "70000", "0x3",
                           "0-99999999999999999999", "1,,2"}) {
    EXPECT_TRUE(cpus_near({device("wrong", text)}).empty()) << text;
  }
  EXPECT_TRUE(cpus_near({device("endless", std::string(1 << 20, '7'))}).empty());
  EXPECT_TRUE(cpus_near({device("many", std::string(1 << 20, ','))}).empty());
  EXPECT_TRUE(cpus_near({""}).empty());
  EXPECT_TRUE(cpus_near({"/nowhere/at/all"}).empty());
  EXPECT_TRUE(cpus_near({}).empty());
}

class PlaceThread : public testing::Test {
 protected:
  PlaceThread() : thread_([this] { end_.acquire(); }) {}
  ~PlaceThread() override {
    end_.release();
    thread_.join();
  }
  CpuNumbers place(const std::string& setting, std::vector<CpuNumbers> near = {},
                   std::size_t least = kLeastNear) {
    const Log log(Level::info, [this](Level level, std::string_view line) {
      said_ += fmt::format("{}: {}\n", to_string(level), line);
    });
    place_thread(thread_.native_handle(), "gdrx-test", {setting, std::move(near), log, least});
    return cpus_of_thread(thread_.native_handle());
  }
  const CpuNumbers mine_ = cpus_of_thread(pthread_self());
  std::string said_;

 private:
  std::binary_semaphore end_{0};
  std::thread thread_;
};

TEST_F(PlaceThread, GivesItTheCpusOfTheListAndAName) {
  EXPECT_EQ(place(std::to_string(mine_.back())), CpuNumbers{mine_.back()});
  EXPECT_EQ(cpus_of_thread(pthread_self()), mine_) << "the program's thread is not touched";
  EXPECT_NE(said_.find("thread gdrx-test: CPUs "), std::string::npos) << said_;
}

TEST_F(PlaceThread, LeavesItAloneWhenItIsOffOrNothingIsNear) {
  EXPECT_EQ(place("off", {{mine_.front()}}, 1), mine_);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(place("auto"), mine_);
  EXPECT_EQ(place("auto", {{65000, 65001}}), mine_) << "an empty intersection";
}

TEST_F(PlaceThread, TakesItNearByItself) {
  if (mine_.size() < 2) GTEST_SKIP() << "with one CPU there is nothing to choose";
  EXPECT_EQ(place("auto", {{mine_.front()}}), mine_) << "a single one may be the program's";
  EXPECT_EQ(place("auto", {{mine_.front()}}, 1), CpuNumbers{mine_.front()});
}

TEST_F(PlaceThread, IsALineOfTheLogWhereTheKernelRefuses) {
  EXPECT_EQ(place("65535"), mine_);
  EXPECT_NE(said_.find("WARN: thread gdrx-test stays on CPUs "), std::string::npos) << said_;
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 1) << said_;
}

TEST(CheckThreadCpus, NamesWhatThisProcessMayNotUse) {
  const CpuNumbers mine = cpus_of_thread(pthread_self());
  EXPECT_TRUE(check_thread_cpus("auto"));
  EXPECT_TRUE(check_thread_cpus("off"));
  EXPECT_TRUE(check_thread_cpus(list_of_cpus(mine)));
  const auto some = check_thread_cpus(fmt::format("{},65530-65535", mine.front()));
  ASSERT_FALSE(some);
  EXPECT_EQ(some.error().code, Errc::unsupported);
  EXPECT_NE(some.error().what.find(": CPUs 65530-65535: not there"), std::string::npos)
      << some.error().what;
  const auto none = check_thread_cpus("65535");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().what.find(": CPU 65535: not there"), std::string::npos)
      << none.error().what;
  EXPECT_EQ(cpus_of_thread(pthread_self()), mine) << "another thread tries";
}

}  // namespace
}  // namespace gdrx
