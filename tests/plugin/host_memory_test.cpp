// SPDX-License-Identifier: Apache-2.0
// Host memory that threads of the plugin copy: what who looks at it meanwhile sees, and that they
// let go of it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

class HostMemory : public Opened {};

#if !defined(__SANITIZE_THREAD__)  // who looks meanwhile races on purpose

constexpr std::size_t kWords = 16;  // of a line of LL128: the last is its flag
constexpr std::size_t kLines = 8192;

// Lines beside the ends of chunks, wherever these may be in 128 KiB.
std::vector<std::size_t> lines_to_watch() {
  std::vector<std::size_t> lines;
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t line = k * 1023 - 2; line <= k * 1024 + 2; ++line) lines.push_back(line);
  }
  return lines;
}

// Each message has its number in every word: a flag that has come with a word that has not is seen.
TEST_F(HostMemory, HasTheWholeOfALineOnceItsFlagIsThere) {
  Pair pair(*net);
  pair.connect(context, context);
  std::vector<std::byte> in(kLines * kWords * sizeof(std::uint64_t)), out(in.size());
  const auto* words = reinterpret_cast<const volatile std::uint64_t*>(in.data());
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> torn{0}, seen{0};
  std::thread watcher([&] {
    const auto lines = lines_to_watch();
    while (!stop) {
      for (const std::size_t line : lines) {
        const auto* word = words + line * kWords;
        const std::uint64_t flag = word[kWords - 1];
        std::atomic_thread_fence(std::memory_order_acquire);
        for (std::size_t i = 0; i + 1 < kWords; ++i) torn += word[i] < flag ? 1 : 0;
        if (flag > seen) seen = flag;
      }
    }
  });
  for (std::uint64_t number = 1; number <= 2000; ++number) {
    for (std::size_t i = 0; i < out.size(); i += sizeof number) {
      std::memcpy(out.data() + i, &number, sizeof number);
    }
    pair.forget();
    pair.post_recv({&in}, {0});
    pair.post_send(out, 0);
    ASSERT_TRUE(pair.finish());
    ASSERT_EQ(in, out);
  }
  stop = true;
  watcher.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_GT(seen, 1U);
}

#endif

// As NCCL does when it aborts: buffers of open requests are deregistered and freed, then closed.
TEST_F(HostMemory, IsNotTouchedOnceItIsDeregistered) {
  constexpr std::size_t kBytes = 8 << 20;
  for (int round = 0; round < 20; ++round) {
    Pair pair(*net);
    pair.connect(context, context);
    void *from = nullptr, *to = nullptr, *send_mr = nullptr, *recv_mr = nullptr;
    for (void** place : {&from, &to}) {
      *place = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(*place, MAP_FAILED);
      std::memset(*place, 1, kBytes);
    }
    ASSERT_EQ(net->reg_mr(pair.send, from, kBytes, nccl::kPtrHost, &send_mr), NetResult::success);
    ASSERT_EQ(net->reg_mr(pair.recv, to, kBytes, nccl::kPtrHost, &recv_mr), NetResult::success);
    void* sent = nullptr;
    void* received = nullptr;
    pair.post(received,
              [&] { return net->irecv(pair.recv, {to}, {kBytes}, {0}, {recv_mr}, &received); });
    pair.post(sent, [&] { return net->isend(pair.send, from, kBytes, 0, send_mr, &sent); });
    int done = 0;
    for (int i = 0; i < 3 + round; ++i) {
      ASSERT_EQ(net->test(received, &done, nullptr), NetResult::success);
      if (done != 0) break;
      ASSERT_EQ(net->test(sent, &done, nullptr), NetResult::success);
      if (done != 0) break;
    }
    EXPECT_EQ(net->dereg_mr(pair.send, send_mr), NetResult::success);
    EXPECT_EQ(net->dereg_mr(pair.recv, recv_mr), NetResult::success);
    munmap(from, kBytes);
    munmap(to, kBytes);
    // Another connection of the device context goes on, and polls for this one, too.
    Pair other(*net);
    other.connect(context, context);
    std::vector<std::byte> in(300'000), out = pattern(300'000, 5);
    other.post_recv({&in}, {0});
    other.post_send(out, 0);
    ASSERT_TRUE(other.finish());
    EXPECT_EQ(in, out);
  }
}

}  // namespace
}  // namespace gdrx::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("GDRX_TRANSPORT", "ucx", 1);  // before the plugin reads its environment
  setenv("GDRX_NET_COPY_THREADS", "4", 1);
  return RUN_ALL_TESTS();
}
