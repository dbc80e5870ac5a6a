// SPDX-License-Identifier: Apache-2.0
// Copies aside of all streams, by the fake driver.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "transport/memory/cuda_memory.hpp"

namespace gdrx::cuda {
namespace {

void check_copies(std::size_t bytes, std::byte value) {
  auto gpu = DeviceBuffer::create(bytes, 0);
  ASSERT_TRUE(gpu.has_value());
  const std::vector<std::byte> data(bytes, value);
  std::vector<std::byte> back(bytes);
  const auto there = copy_aside_to_device(gpu->data(), data.data(), bytes);
  ASSERT_TRUE(there.has_value()) << describe(there.error());
  const auto here = copy_aside_to_host(back.data(), gpu->data(), bytes);
  ASSERT_TRUE(here.has_value()) << describe(here.error());
  EXPECT_EQ(back, data);
}

TEST(Lanes, AreMadeAnewInAContextThatTookAnOthersPlace) {
  for (int value = 1; value < 4; ++value) check_copies(100'000, std::byte(value));
}

}  // namespace
}  // namespace gdrx::cuda

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // Under the real one's name: whoever asks for the driver gets it.
  if (dlopen(GDRX_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL) == nullptr) return 1;
  return RUN_ALL_TESTS();
}
