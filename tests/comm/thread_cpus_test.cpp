// SPDX-License-Identifier: Apache-2.0
// Where the threads of a communicator are, as the kernel has it. One process for each case.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/cpu_list.hpp"
#include "base/thread_cpus.hpp"
#include "tests/base/own_threads.hpp"
#include "tests/comm/world.hpp"

namespace gdrx::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

CpuNumbers mine() { return cpus_of_thread(pthread_self()); }
std::string text_of(const CpuNumbers& cpus) { return list_of_cpus(cpus); }

/// The CPUs of the progress threads of two ranks.
std::string progress(gdrxConfig_t config = GDRX_CONFIG_INITIALIZER) {
  const CpuNumbers before = mine();
  const World world(2, config);
  world.run([](int rank, gdrxComm_t comm) {
    float value = static_cast<float>(rank);
    EXPECT_EQ(gdrxAllReduce(&value, &value, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr),
              gdrxSuccess);
    EXPECT_EQ(value, 1.0F);
  });
  EXPECT_EQ(mine(), before) << "the program's own thread";
  const auto threads = own_threads();
  const auto found = threads.find("gdrx-progress");
  return found == threads.end() ? "none" : found->second;
}

TEST(ThreadCpus, AreTheProgramsOfItself) { EXPECT_EQ(progress(), text_of(mine())); }

TEST(ThreadCpus, AreTheProgramsWhenItIsOff) {
  setenv("GDRX_THREAD_CPUS", "off", 1);
  EXPECT_EQ(progress(), text_of(mine()));
}

TEST(ThreadCpus, AreThoseOfTheList) {
  const std::string last = std::to_string(mine().back());
  setenv("GDRX_THREAD_CPUS", last.c_str(), 1);
  EXPECT_EQ(progress(), last);
}

// As mpirun --bind-to core binds.
TEST(ThreadCpus, StayWithinTheMaskOfAProgramThatIsBound) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(mine().back()), &one);
  const std::string last = std::to_string(mine().back());
  const std::string first = std::to_string(mine().front());
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
  EXPECT_EQ(progress(), last);
  setenv("GDRX_THREAD_CPUS", first.c_str(), 1);
  EXPECT_EQ(progress(), first) << "a list is taken within the cpuset";
}

TEST(ThreadCpus, RefuseAListThatMayNotBeUsed) {
  setenv("GDRX_THREAD_CPUS", "65530-65531", 1);
  gdrxComm_t comms[2] = {};
  EXPECT_EQ(gdrxCommInitAll(comms, 2, nullptr), gdrxUnsupported);
  const std::string why = gdrxGetLastError(nullptr);
  EXPECT_NE(why.find("GDRX_THREAD_CPUS=65530-65531: CPUs 65530-65531"), std::string::npos) << why;
  EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  setenv("GDRX_THREAD_CPUS", "0-", 1);
  EXPECT_EQ(gdrxCommInitAll(comms, 2, nullptr), gdrxInvalidArgument);
}

// They would run the program's handlers, on stacks and at times that it does not expect.
TEST(ThreadSignals, AreForTheProgramsThreads) {
  const World world(2);
  gdrxUniqueId id;
  ASSERT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);  // its root is a thread, too
  auto threads = own_threads("SigBlk");
  const auto limit = std::chrono::steady_clock::now() + 10s;
  while (!threads.contains("gdrx-root") && std::chrono::steady_clock::now() < limit) {
    threads = own_threads("SigBlk");  // a thread names itself
  }
  EXPECT_TRUE(threads.contains("gdrx-progress"));
  EXPECT_TRUE(threads.contains("gdrx-root"));
  for (const auto& [name, mask] : threads) {
    ASSERT_EQ(mask.size(), 16U) << name << ": " << mask;
    const unsigned long long blocked = std::stoull(mask, nullptr, 16);
    for (const int signal : {SIGTERM, SIGINT, SIGALRM, SIGUSR1, SIGCHLD}) {
      EXPECT_NE(blocked >> (signal - 1) & 1U, 0U) << name << " takes signal " << signal;
    }
    EXPECT_EQ(blocked >> (SIGSEGV - 1) & 1U, 0U) << name << "'s own faults have no report";
  }
}

#ifdef GDRX_SIM_FOLDER
class ThreadCpusOfANic : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("gdrx-nic-" + std::to_string(getpid()));
    fs::create_directories(folder_);
    setenv("SIM_NIC_FOLDER", folder_.c_str(), 1);
    setenv("GDRX_MODULE_PATH", GDRX_SIM_FOLDER, 1);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string progress_near(const std::string& cpus) const {
    std::ofstream(folder_ / "local_cpulist") << cpus << '\n';
    return progress(with(nullptr, "verbs"));
  }

 private:
  fs::path folder_;
};

TEST_F(ThreadCpusOfANic, AreTheProgramsWhereNoneOfThemIsNear) {
  EXPECT_EQ(progress_near("65000-65031"), text_of(mine()));
}

TEST_F(ThreadCpusOfANic, AreMoreThanOne) {
  if (mine().size() < 2) GTEST_SKIP() << "there is one CPU";
  EXPECT_EQ(progress_near(std::to_string(mine().front())), text_of(mine()));
}

TEST_F(ThreadCpusOfANic, AreThoseNearIt) {
  if (mine().size() < 3) GTEST_SKIP() << "with two CPUs there is nothing to choose";
  const CpuNumbers near{mine()[1], mine()[2]};
  EXPECT_EQ(progress_near(text_of(near)), text_of(near));
}
#endif

}  // namespace
}  // namespace gdrx::test
