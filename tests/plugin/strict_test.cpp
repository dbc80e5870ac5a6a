// SPDX-License-Identifier: Apache-2.0
// A plugin that cannot work: NCCL goes on without it, unless it must not. One process for each
// case, since the plugin reads its environment once.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/plugin/pair.hpp"

namespace gdrx::test {
namespace {

void without_fabric(const char* strict) {
  setenv("GDRX_MODULE_PATH", "/nonexistent", 1);
  setenv("GDRX_NET_STRICT", strict, 1);
}

TEST(Unusable, IsRefusedByInitSoThatNcclTakesAnotherNetwork) {
  without_fabric("0");
  std::string why;
  const auto net = AnyNet::open(GDRX_PLUGIN, 11, &why);
  ASSERT_NE(net, nullptr) << why;
  void* context = nullptr;
  EXPECT_EQ(net->init(&context, nccl_logger), NetResult::system_error);
  EXPECT_NE(heard().find("libgdrx-fabric-tcp.so"), std::string::npos) << heard();
}

TEST(UnusableAndStrict, IsTakenAndThenMakesNoConnection) {
  without_fabric("1");
  std::string why;
  const auto net = AnyNet::open(GDRX_PLUGIN, 11, &why);
  ASSERT_NE(net, nullptr) << why;
  void* context = nullptr;
  ASSERT_EQ(net->init(&context, nccl_logger), NetResult::success);
  int count = 0;
  ASSERT_EQ(net->devices(&count), NetResult::success);
  EXPECT_EQ(count, 1);
  Properties properties;
  EXPECT_EQ(net->properties(0, &properties), NetResult::success);
  std::array<std::byte, nccl::kHandleMaxSize> handle{};
  void* listener = nullptr;
  EXPECT_EQ(net->listen(context, 0, handle.data(), &listener), NetResult::system_error);
  EXPECT_NE(heard().find("GDRX_NET_STRICT=1"), std::string::npos) << heard();
  EXPECT_EQ(net->finalize(context), NetResult::success);
}

}  // namespace
}  // namespace gdrx::test
