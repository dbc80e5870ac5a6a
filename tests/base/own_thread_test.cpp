// SPDX-License-Identifier: Apache-2.0
#include "base/own_thread.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <set>
#include <string>

namespace gdrx {
namespace {

constexpr std::array kAsked{SIGTERM, SIGINT, SIGCHLD, SIGALRM, SIGUSR1, SIGPROF, SIGPIPE};
constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

std::set<int> blocked_here() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  std::set<int> blocked;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (sigismember(&mask, signal) == 1) blocked.insert(signal);
  }
  return blocked;
}

TEST(OwnThread, TakesNoSignalButThoseOfItsOwnFaults) {
  const auto before = blocked_here();
  std::set<int> blocked;
  OwnThread("gdrx-test", [&] { blocked = blocked_here(); }).join();
  for (const int signal : kAsked) EXPECT_TRUE(blocked.contains(signal)) << signal;
  for (const int signal : kFaults) EXPECT_FALSE(blocked.contains(signal)) << signal;
  EXPECT_EQ(blocked_here(), before) << "of who makes it";
}

TEST(OwnThread, HasItsNameFromTheBeginning) {
  std::string name;
  OwnThread("gdrx-test", [&] {
    std::array<char, 16> text{};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    name = text.data();
  }).join();
  EXPECT_EQ(name, "gdrx-test");
}

TEST(OwnThread, IsWaitedForByItsEnd) {
  std::atomic<bool> asked{false};
  std::atomic<bool> ended{false};
  {
    const OwnThread thread("gdrx-test", [&] {
      asked.wait(false);
      ended = true;
    });
    asked = true;
    asked.notify_one();
  }
  EXPECT_TRUE(ended);
}

TEST(OwnThread, IsOnItsCpusWhenItIsThere) {
  const CpuNumbers mine = cpus_of_thread(pthread_self());
  std::atomic<bool> over{false};
  OwnThread thread("gdrx-test", ThreadHome{std::to_string(mine.back())}, [&] { over.wait(false); });
  EXPECT_EQ(cpus_of_thread(thread.handle()), CpuNumbers{mine.back()});
  EXPECT_EQ(cpus_of_thread(pthread_self()), mine);
  over = true;
  over.notify_one();
}

}  // namespace
}  // namespace gdrx
