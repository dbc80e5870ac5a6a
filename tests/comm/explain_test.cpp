// SPDX-License-Identifier: Apache-2.0
// What is said of a call tells who carries it. GPUs are made up.
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
  std::string said(Collective collective, std::uint64_t count, MemoryKind memory,
                   ReduceOp op = ReduceOp::sum) {
    Call call;
    call.collective = collective;
    call.count = count;
    call.type = DataType::float32;
    call.op = op;
    const auto text = comms_[0]->explain(call, memory);
    return text ? *text : describe(text.error());
  }
  std::string said() {
    const auto text = comms_[0]->explain(1 << 20);
    return text ? *text : describe(text.error());
  }
};

std::size_t count_of(const std::string& text, const std::string& what) {
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
  EXPECT_EQ(count_of(text.substr(0, host), "<- chosen"), 1U) << text;
  EXPECT_EQ(count_of(text.substr(host), "<- chosen"), 1U) << text;
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
  EXPECT_EQ(count_of(text, "<- chosen"), 1U) << text;
}

TEST_F(Explain, SaysThatOneHostHasEveryAlgorithmOverSharedMemory) {
  make_with_gpus("ring");
  const std::string text = said();
  const std::string host = text.substr(text.find("\nhost buffers: "));
  EXPECT_NE(host.find("* ring              over shm"), std::string::npos) << text;
}

constexpr Collective kAll[] = {Collective::all_reduce,
                               Collective::reduce_scatter,
                               Collective::all_gather,
                               Collective::broadcast,
                               Collective::reduce,
                               Collective::barrier,
                               Collective::send_recv,
                               Collective::all_to_all,
                               Collective::gather,
                               Collective::scatter,
                               Collective::scan,
                               Collective::exscan,
                               Collective::all_to_all_v,
                               Collective::gather_v,
                               Collective::scatter_v,
                               Collective::all_gather_v,
                               Collective::reduce_scatter_v,
                               Collective::all_reduce_leaves};

TEST_F(Explain, NamesOneWayOfEveryCallOfHostMemory) {
  make(2);
  for (const Collective collective : kAll) {
    for (const std::uint64_t count : {0, 2, 1 << 20}) {
      const std::string text = said(collective, count, MemoryKind::host);
      EXPECT_EQ(count_of(text, "\n  * "), 1U) << text;
      EXPECT_EQ(text.find("GPU"), std::string::npos) << text;
    }
  }
  EXPECT_NE(said(Collective::all_gather, 2, MemoryKind::host).find("in one hop"),
            std::string::npos);
  EXPECT_NE(said(Collective::all_gather, 1 << 20, MemoryKind::host).find("<- chosen"),
            std::string::npos);
  EXPECT_NE(said(Collective::all_to_all_v, 2, MemoryKind::host)
                .find("in one hop where a rank gives at most 16 KiB, else a message"),
            std::string::npos);
  EXPECT_NE(said(Collective::all_to_all, 1 << 20, MemoryKind::host).find("a message to each rank"),
            std::string::npos);
}

TEST_F(Explain, NamesTheKernelOfACallOfGpuMemory) {
  make_with_gpus("auto");
  for (const Collective collective : kAll) {
    if (collective == Collective::all_reduce_leaves) continue;  // it has none
    const std::string text = said(collective, 1 << 20, MemoryKind::cuda);
    EXPECT_EQ(count_of(text, "\n  * "), 1U) << text;
    EXPECT_EQ(text.find("host"), std::string::npos) << text;
    EXPECT_EQ(text.find(std::string("GPU buffers: ") + std::string(to_string(collective))), 0U)
        << text;
  }
}

TEST_F(Explain, SaysWhyACallOfGpuMemoryIsStaged) {
  make_with_gpus("auto");
  const std::string text = said(Collective::reduce, 100, MemoryKind::cuda, ReduceOp::band);
  EXPECT_EQ(text.find("GPU buffers go through pinned host memory: no kernel has its type"), 0U)
      << text;
  EXPECT_EQ(count_of(text, "\n  in the order of their stream, and in graphs"), 1U) << text;
  EXPECT_EQ(count_of(text, "\n  * "), 1U) << text;
}

}  // namespace
}  // namespace gdrx
