// SPDX-License-Identifier: Apache-2.0
// Memory is registered while messages flow, over simulated NICs.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kSlow = 300;  // ms of a call, on each of two rails

class SlowRegistration : public Opened {
 protected:
  void SetUp() override {
    setenv("GDRX_TRANSPORT", "verbs", 1);
    setenv("GDRX_MODULE_PATH", GDRX_SIM_FOLDER, 1);
    setenv("NCCL_IB_TIMEOUT", "10", 1);
    Opened::SetUp();
    ASSERT_EQ(net->init(&other, nccl_logger), NetResult::success);
    void* module = dlopen(GDRX_SIM_MODULE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module, nullptr) << dlerror();
    take = reinterpret_cast<void (*)(int)>(dlsym(module, "gdrx_sim_slow_registration"));
    ASSERT_NE(take, nullptr);
  }
  void TearDown() override {
    take(0);
    EXPECT_EQ(net->finalize(other), NetResult::success);
    Opened::TearDown();
    EXPECT_EQ(heard(), "");
  }
  void* registered(void* comm, std::vector<std::byte>& data) {
    void* mr = nullptr;
    EXPECT_EQ(net->reg_mr(comm, data.data(), data.size(), nccl::kPtrHost, &mr), NetResult::success);
    return mr;
  }
  /// Sends `out` from its registration.
  void passes(Pair& pair, std::vector<std::byte>& out, void* mr) {
    std::vector<std::byte> in(out.size());
    pair.forget();
    pair.post_recv({&in}, {1});
    void* request = nullptr;
    pair.post(request,
              [&] { return net->isend(pair.send, out.data(), out.size(), 1, mr, &request); });
    ASSERT_TRUE(pair.finish());
    EXPECT_TRUE(in == out);
  }
  /// Messages until `stop`: the longest time of one.
  Clock::duration longest_message(Pair& pair, const std::atomic<bool>& stop) {
    Clock::duration longest{};
    std::vector<std::byte> out = pattern(100'000, 1), in(out.size());
    while (!stop && !HasFailure()) {
      const auto before = Clock::now();
      pair.forget();
      pair.post_recv({&in}, {1});
      pair.post_send(out, 1);
      EXPECT_TRUE(pair.finish());
      longest = std::max(longest, Clock::now() - before);
    }
    return longest;
  }
  void* other = nullptr;
  void (*take)(int) = nullptr;
};

TEST_F(SlowRegistration, HoldsUpNoMessageOfItsDeviceContext) {
  Pair pair(*net), second(*net);
  pair.connect(context, other);
  second.connect(context, other);
  std::vector<std::byte> data(1 << 20);
  take(kSlow);
  std::atomic<bool> stop{false};
  std::thread registers([&] {
    void* mr = registered(second.send, data);
    EXPECT_EQ(net->dereg_mr(second.send, mr), NetResult::success);
    stop = true;
  });
  const auto longest = longest_message(pair, stop);
  registers.join();
  EXPECT_LT(longest, milliseconds(kSlow / 2));
  take(0);
}

TEST_F(SlowRegistration, OfTheSameMemoryByTwoThreadsAtOnceServesBoth) {
  Pair pair(*net), second(*net);
  pair.connect(context, other);
  second.connect(context, other);
  std::vector<std::byte> data = pattern(300'000, 3);
  for (int first = 0; first < 2; ++first) {
    take(50);
    std::array<void*, 2> mr{};
    std::thread registers([&] { mr[0] = registered(pair.send, data); });
    mr[1] = registered(second.send, data);
    registers.join();
    take(0);
    const std::array<void*, 2> comms{pair.send, second.send};
    const auto last = static_cast<std::size_t>(1 - first);
    const auto gone = static_cast<std::size_t>(first);
    EXPECT_EQ(net->dereg_mr(comms[gone], mr[gone]), NetResult::success);
    passes(last == 0 ? pair : second, data, mr[last]);
    EXPECT_EQ(net->dereg_mr(comms[last], mr[last]), NetResult::success);
  }
}

TEST_F(SlowRegistration, OutlivesADeregistrationOfTheSameMemoryMeanwhile) {
  Pair pair(*net), second(*net);
  pair.connect(context, other);
  second.connect(context, other);
  std::vector<std::byte> data = pattern(300'000, 3);
  void* before = registered(pair.send, data);
  take(50);
  std::thread ends([&] { EXPECT_EQ(net->dereg_mr(pair.send, before), NetResult::success); });
  std::this_thread::sleep_for(milliseconds(10));  // the other one is amid it
  void* mr = registered(second.send, data);
  ends.join();
  take(0);
  passes(second, data, mr);
  EXPECT_EQ(net->dereg_mr(second.send, mr), NetResult::success);
}

}  // namespace
}  // namespace gdrx::test
