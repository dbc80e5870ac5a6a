// SPDX-License-Identifier: Apache-2.0
// Where the plugin's threads are, as the kernel has it. One process for each case, since the plugin
// reads its environment once.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdlib>

#include "base/cpu_list.hpp"
#include "base/thread_cpus.hpp"
#include "tests/base/own_threads.hpp"
#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

CpuNumbers mine() { return cpus_of_thread(pthread_self()); }

/// Of a connection in one process, with two threads that copy.
std::string copying(const char* setting) {
  setenv("GDRX_THREAD_CPUS", setting, 1);
  setenv("GDRX_TRANSPORT", "ucx", 1);
  setenv("GDRX_NET_COPY_THREADS", "3", 1);
  std::string why;
  const auto net = AnyNet::open(GDRX_PLUGIN, 11, &why);
  if (net == nullptr) return why;
  void* context = nullptr;
  if (net->init(&context, nccl_logger) != NetResult::success) return heard();
  std::string found;
  {
    Pair pair(*net);
    pair.connect(context, context);
    found = own_threads()["gdrx-net-copy"];
  }
  EXPECT_EQ(net->finalize(context), NetResult::success);
  return found;
}

TEST(PluginThreads, StayWhereNcclHasPutTheThreadThatMadeThem) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(mine().back()), &one);
  ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof one, &one), 0);
  EXPECT_EQ(copying("auto"), list_of_cpus(mine()));
}

TEST(PluginThreads, AreOnTheCpusOfTheList) {
  const CpuNumbers before = mine();
  const std::string last = std::to_string(before.back());
  EXPECT_EQ(copying(last.c_str()), last);
  EXPECT_EQ(mine(), before) << "NCCL's thread is not touched";
}

// Other hosts of the job may have them, and take the plugin.
TEST(PluginThreads, GoOnWhereAListMayNotBeUsed) {
  EXPECT_EQ(copying("65535"), list_of_cpus(mine()));
  EXPECT_NE(heard().find("GDRX_THREAD_CPUS=65535: CPU 65535"), std::string::npos) << heard();
}

}  // namespace
}  // namespace gdrx::test
