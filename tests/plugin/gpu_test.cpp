// SPDX-License-Identifier: Apache-2.0
// GPU memory that goes from GPU to GPU: the plugin over a fake CUDA driver whose memory no CPU may
// touch. What the real driver does is not shown by this.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

void* (*allocate)(std::size_t) = nullptr;
void* (*see)(void*) = nullptr;
int (*contexts)() = nullptr;

class GpuMemory : public Opened {
 protected:
  GpuMemory() : Opened(11) {}
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Opened::SetUp());
    heard().clear();
    pair = std::make_unique<Pair>(*net);
    pair->connect(context, context);
    from = allocate(kBytes);
    to = allocate(kBytes);
    const auto data = pattern(kBytes, 9);
    std::memcpy(see(from), data.data(), kBytes);
    ASSERT_EQ(net->reg_mr(pair->send, from, kBytes, nccl::kPtrCuda, &send_mr), NetResult::success);
    ASSERT_EQ(net->reg_mr(pair->recv, to, kBytes, nccl::kPtrCuda, &recv_mr), NetResult::success);
  }
  void TearDown() override {
    if (pair) {
      EXPECT_EQ(net->dereg_mr(pair->send, send_mr), NetResult::success);
      EXPECT_EQ(net->dereg_mr(pair->recv, recv_mr), NetResult::success);
      pair.reset();
    }
    Opened::TearDown();
  }
  void* at(void* base, std::size_t offset) { return static_cast<char*>(base) + offset; }
  static constexpr std::size_t kBytes = 4 << 20;
  std::unique_ptr<Pair> pair;
  void *from = nullptr, *to = nullptr, *send_mr = nullptr, *recv_mr = nullptr;
};

TEST_F(GpuMemory, IsAnnounced) {
  Properties properties;
  ASSERT_EQ(net->properties(0, &properties), NetResult::success);
  EXPECT_EQ(properties.ptr_support, nccl::kPtrHost | nccl::kPtrCuda);
}

TEST_F(GpuMemory, ArrivesAtItsOffsetWholeAndNothingBesideIt) {
  std::memset(see(to), 0x11, kBytes);
  void *recv = nullptr, *send = nullptr;
  ASSERT_EQ(net->irecv(pair->recv, {at(to, 4096)}, {1'000'000}, {3}, {recv_mr}, &recv),
            NetResult::success);
  pair->post(send,
             [&] { return net->isend(pair->send, at(from, 128), 777'777, 3, send_mr, &send); });
  pair->track(recv);
  ASSERT_TRUE(pair->finish());
  EXPECT_EQ(pair->size(0), 777'777);
  EXPECT_EQ(pair->size(1), 777'777);
  const auto* seen = static_cast<const char*>(see(to));
  EXPECT_EQ(std::memcmp(seen + 4096, static_cast<const char*>(see(from)) + 128, 777'777), 0);
  EXPECT_EQ(seen[4095], 0x11);
  EXPECT_EQ(seen[4096 + 777'777], 0x11);
  EXPECT_EQ(heard(), "");
}

TEST_F(GpuMemory, IsCopiedInAContextOfItsOwnThatEndsWithTheConnection) {
  EXPECT_EQ(contexts(), 1);
  EXPECT_EQ(net->dereg_mr(pair->send, send_mr), NetResult::success);
  EXPECT_EQ(net->dereg_mr(pair->recv, recv_mr), NetResult::success);
  pair.reset();
  EXPECT_EQ(contexts(), 0);
}

TEST_F(GpuMemory, TakesAMessageOfHostMemory) {
  auto out = pattern(100'000, 4);
  void* recv = nullptr;
  ASSERT_EQ(net->irecv(pair->recv, {to}, {kBytes}, {0}, {recv_mr}, &recv), NetResult::success);
  pair->post_send(out, 0);
  pair->track(recv);
  ASSERT_TRUE(pair->finish());
  EXPECT_EQ(std::memcmp(see(to), out.data(), out.size()), 0);
}

TEST_F(GpuMemory, TakesManyLittleMessagesOfHostMemory) {
  constexpr std::size_t kMessages = 200, kRoom = 20'000;
  for (std::size_t first = 0; first < kMessages; first += 20) {
    std::vector<std::vector<std::byte>> out;
    for (std::size_t i = 0; i < 20; ++i) {
      out.push_back(pattern(1 + (first + i) * 97, static_cast<unsigned>(first + i)));
      void* recv = nullptr;
      ASSERT_EQ(net->irecv(pair->recv, {at(to, i * kRoom)}, {kRoom}, {0}, {recv_mr}, &recv),
                NetResult::success);
      pair->track(recv);
    }
    for (auto& message : out) pair->post_send(message, 0);
    ASSERT_TRUE(pair->finish());
    for (std::size_t i = 0; i < 20; ++i) {
      const auto sent = pattern(out[i].size(), static_cast<unsigned>(first + i));
      EXPECT_EQ(std::memcmp(static_cast<char*>(see(to)) + i * kRoom, sent.data(), sent.size()), 0);
    }
  }
}

// Beside what is written as values nothing changes, and what cannot be is copied.
TEST_F(GpuMemory, TakesAFewWordsOfHostMemory) {
  std::memset(see(to), 0x11, kBytes);
  for (const std::size_t offset : {4096, 4100}) {
    for (std::size_t size = 8; size <= 80; size += 4) {
      auto out = pattern(size, static_cast<unsigned>(offset + size));
      void* recv = nullptr;
      ASSERT_EQ(net->irecv(pair->recv, {at(to, offset)}, {4096}, {0}, {recv_mr}, &recv),
                NetResult::success);
      pair->track(recv);
      pair->post_send(out, 0);
      ASSERT_TRUE(pair->finish());
      const auto* seen = static_cast<const unsigned char*>(see(at(to, offset)));
      EXPECT_EQ(std::memcmp(seen, out.data(), size), 0) << size << " bytes at " << offset;
      EXPECT_EQ(seen[-1], 0x11);
      EXPECT_EQ(seen[size], 0x11) << size << " bytes at " << offset;
    }
    std::memset(see(to), 0x11, kBytes);
  }
}

TEST_F(GpuMemory, MixesWithHostMemoryInAGroup) {
  auto out = pattern(200'000, 5);
  std::vector<std::byte> in(200'000);
  void *recv = nullptr, *send = nullptr;
  ASSERT_EQ(net->irecv(pair->recv, {to, in.data(), at(to, 65536)}, {1000, in.size(), 0}, {1, 2, 3},
                       {recv_mr, nullptr, recv_mr}, &recv),
            NetResult::success);
  pair->track(recv);
  std::vector<std::byte> empty;
  pair->post_send(empty, 3);
  pair->post_send(out, 2);
  pair->post(send, [&] { return net->isend(pair->send, from, 2000, 1, send_mr, &send); });
  ASSERT_TRUE(pair->finish());
  EXPECT_EQ(pair->size(0, 0), 1000);  // cut
  EXPECT_EQ(pair->size(0, 1), 200'000);
  EXPECT_EQ(pair->size(0, 2), 0);
  EXPECT_EQ(in, out);
  EXPECT_EQ(std::memcmp(see(to), see(from), 1000), 0);
}

TEST_F(GpuMemory, IsRefusedWhereTheReceiverHasHostMemory) {
  std::vector<std::byte> in(100);
  pair->post_recv({&in}, {0});
  void* send = nullptr;
  NetResult result = NetResult::success;
  while (result == NetResult::success) {
    ASSERT_EQ(send, nullptr);
    result = net->isend(pair->send, from, 100, 0, send_mr, &send);
  }
  EXPECT_NE(heard().find("receives in host memory"), std::string::npos) << heard();
}

TEST_F(GpuMemory, BeyondWhatIsRegisteredIsRefused) {
  void* recv = nullptr;
  EXPECT_EQ(net->irecv(pair->recv, {at(to, 1)}, {kBytes}, {0}, {recv_mr}, &recv),
            NetResult::invalid_argument);
}

}  // namespace
}  // namespace gdrx::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("GDRX_NET_GPU", "1", 1);
  // The plugin takes the driver that the process has already.
  void* driver = dlopen(GDRX_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 1;
  gdrx::test::allocate =
      reinterpret_cast<void* (*)(std::size_t)>(dlsym(driver, "fake_cuda_allocate"));
  gdrx::test::see = reinterpret_cast<void* (*)(void*)>(dlsym(driver, "fake_cuda_see"));
  gdrx::test::contexts = reinterpret_cast<int (*)()>(dlsym(driver, "fake_cuda_contexts"));
  // In its context, then, nothing could be copied.
  reinterpret_cast<void (*)()>(dlsym(driver, "fake_cuda_let_application_wait"))();
  return RUN_ALL_TESTS();
}
