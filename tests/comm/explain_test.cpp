// SPDX-License-Identifier: Apache-2.0
// What is said of an allReduce tells which memory a table is for. GPUs are made up.
#include <gtest/gtest.h>

#include <string>

#include "tests/comm/thread_ranks.hpp"
#include "tests/gpu/no_path.hpp"

namespace gdrx {
namespace {

class SomeGpu final : public gpu::NoPath {
 public:
  explicit SomeGpu(int rank) {
    ticket_.process = 1;
    ticket_.processors = 132;
    ticket_.device[0] = static_cast<std::uint8_t>(rank);
  }
};

class Explain : public ThreadRanks {
 protected:
  void TearDown() override {
    for_each([&](std::size_t rank) {
      (void)comms_[rank]->drain();
      (void)comms_[rank]->leave();
      comms_[rank].reset();
    });
  }
  void make_with_gpus(const std::string& algorithm) {
    make(
        2, [](int rank) { return std::make_unique<SomeGpu>(rank); },
        [&](Config& config) {
          config.algo = algorithm;
          config.module_path = "/nowhere";
        });
  }
  std::string said() {
    const auto text = comms_[0]->explain(1 << 20);
    return text ? *text : describe(text.error());
  }
};

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST_F(Explain, HasATableForGpuBuffersAndOneForHostBuffers) {
  make_with_gpus("auto");
  const std::string text = said();
  EXPECT_EQ(text.find("GPU buffers: allReduce of 1048576 bytes, made up on each of 2 ranks"), 0U);
  const std::size_t host = text.find("\nhost buffers: allReduce of 1048576 bytes, 2 ranks");
  ASSERT_NE(host, std::string::npos) << text;
  EXPECT_EQ(count(text.substr(0, host), "<- chosen"), 1U) << text;
  EXPECT_EQ(count(text.substr(host), "<- chosen"), 1U) << text;
}

TEST_F(Explain, HasOneTableWithoutGpus) {
  make(2);
  const std::string text = said();
  EXPECT_EQ(text.find("host buffers: allReduce of 1048576 bytes, 2 ranks"), 0U) << text;
  EXPECT_EQ(text.find("GPU"), std::string::npos) << text;
}

TEST_F(Explain, SaysThatGpuBuffersAreCopiedForAnAlgorithmThatNoKernelHas) {
  make_with_gpus("halving-doubling");
  const std::string text = said();
  EXPECT_EQ(text.find("host buffers, and GPU buffers, which are copied to the host: "), 0U) << text;
  EXPECT_EQ(count(text, "<- chosen"), 1U) << text;
}

TEST_F(Explain, SaysThatOneHostHasEveryAlgorithmOverSharedMemory) {
  make_with_gpus("ring");
  const std::string text = said();
  const std::string host = text.substr(text.find("\nhost buffers: "));
  EXPECT_NE(host.find("* ring              over shm"), std::string::npos) << text;
}

}  // namespace
}  // namespace gdrx
