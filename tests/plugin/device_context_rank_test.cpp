// SPDX-License-Identifier: Apache-2.0
// Device contexts draw the ranks under which the transport knows them. Here some draw the same.
#include <gtest/gtest.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "tests/plugin/each_abi.hpp"

namespace {

constexpr std::uint32_t kDrawn = 0x12345678;
std::atomic<bool> drawn_alike{false};

}  // namespace

// The library's, too: of a device context's 64 random bits the lower half makes its rank.
extern "C" __attribute__((visibility("default"))) ssize_t getrandom(void* data, std::size_t size,
                                                                    unsigned flags) {
  const ssize_t got = syscall(SYS_getrandom, data, size, flags);
  if (size == sizeof(std::uint64_t) && drawn_alike.load()) {
    std::memcpy(data, &kDrawn, sizeof kDrawn);
  }
  return got;
}

namespace gdrx::test {
namespace {

class DeviceContextRanks : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    net = AnyNet::open(GDRX_PLUGIN, 12, &why);
    ASSERT_NE(net, nullptr) << why;
    heard().clear();
    for (void*& context : contexts) {
      ASSERT_EQ(net->init(&context, &nccl_logger), NetResult::success) << heard();
    }
  }
  void TearDown() override {
    drawn_alike = false;
    for (void* context : contexts) EXPECT_EQ(net->finalize(context), NetResult::success);
  }
  /// A device context of that context, which stays open as long as the listener.
  void* context_of(void* context, bool alike, std::array<std::byte, nccl::kHandleMaxSize>& handle) {
    void* listener = nullptr;
    drawn_alike = alike;
    EXPECT_EQ(net->listen(context, 0, handle.data(), &listener), NetResult::success) << heard();
    drawn_alike = false;
    return listener;
  }
  void passes_a_message(Pair& pair) {
    Bytes out = pattern(100'000, 5);
    Bytes in(out.size());
    pair.post_recv({&in}, {3});
    pair.post_send(out, 3);
    ASSERT_TRUE(pair.finish()) << heard();
    EXPECT_EQ(in, out);
  }
  std::unique_ptr<AnyNet> net;
  std::array<void*, 3> contexts{};
  std::array<std::byte, nccl::kHandleMaxSize> handle{};
};

TEST_F(DeviceContextRanks, ThatAreAlikeBothReachAThird) {
  void* first_context = context_of(contexts[0], true, handle);
  void* second_context = context_of(contexts[1], true, handle);
  {
    Pair first(*net);
    Pair second(*net);
    first.connect(contexts[0], contexts[2]);
    second.connect(contexts[1], contexts[2]);
    if (HasFatalFailure()) return;
    passes_a_message(second);
    passes_a_message(first);
  }
  for (void* device_context : {first_context, second_context})
    EXPECT_EQ(net->close_listen(device_context), NetResult::success);
}

TEST_F(DeviceContextRanks, ThatAreAlikeAreBothReachedByAThird) {
  void* first_context = context_of(contexts[0], true, handle);
  void* second_context = context_of(contexts[1], true, handle);
  {
    Pair first(*net);
    Pair second(*net);
    first.connect(contexts[2], contexts[0]);
    second.connect(contexts[2], contexts[1]);
    if (HasFatalFailure()) return;
    passes_a_message(second);
    passes_a_message(first);
  }
  for (void* device_context : {first_context, second_context})
    EXPECT_EQ(net->close_listen(device_context), NetResult::success);
}

TEST_F(DeviceContextRanks, ThatAreAlikeReachEachOther) {
  void* first_context = context_of(contexts[0], true, handle);
  void* second_context = context_of(contexts[1], true, handle);
  {
    Pair pair(*net);
    pair.connect(contexts[0], contexts[1]);
    if (HasFatalFailure()) return;
    passes_a_message(pair);
  }
  for (void* device_context : {first_context, second_context})
    EXPECT_EQ(net->close_listen(device_context), NetResult::success);
}

}  // namespace
}  // namespace gdrx::test
