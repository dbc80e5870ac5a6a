// SPDX-License-Identifier: Apache-2.0
// The plugin's library, loaded in one version of the ABI, with two contexts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/pair.hpp"

namespace gdrx::test {

using Bytes = std::vector<std::byte>;

class Plugin : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    std::string why;
    net = AnyNet::open(GDRX_PLUGIN, GetParam(), &why);
    ASSERT_NE(net, nullptr) << why;
    ASSERT_EQ(net->init(&context, nccl_logger), NetResult::success);
    ASSERT_EQ(net->init(&other, nccl_logger), NetResult::success);
    heard().clear();
  }
  void TearDown() override {
    if (net == nullptr) return;
    EXPECT_EQ(net->finalize(context), NetResult::success);
    EXPECT_EQ(net->finalize(other), NetResult::success);
    if (!expects_warning) {
      EXPECT_EQ(heard(), "");
    }
  }
  std::unique_ptr<AnyNet> net;
  void* context = nullptr;
  void* other = nullptr;
  bool expects_warning = false;
};

}  // namespace gdrx::test
