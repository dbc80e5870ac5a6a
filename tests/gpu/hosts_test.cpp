// SPDX-License-Identifier: Apache-2.0
// allReduce of GPU buffers between hosts: ranks of one process, each with a GPU, believe that they
// are on several hosts. Over UCX and over simulated NICs. Skipped without a GPU.
#include <dlfcn.h>
#include <fmt/format.h>

#include "collectives/kernels/call.hpp"
#include "tests/gpu/hosts.hpp"

namespace gdrx::gpu {
namespace {

void check_sizes(int hosts, int locals, const char* fabric) {
  if (locals > gpu_count()) GTEST_SKIP() << "needs " << locals << " GPUs";
  Hosts world(hosts, locals, settings_of(fabric));
  for (const std::uint64_t count : {1, 5, 1021, 70000, 1000003, 9000001}) {
    world.check(DataType::float32, ReduceOp::sum, count, false, 0);
  }
  world.check(DataType::float16, ReduceOp::sum, 300001, true, 2);
  world.check(DataType::uint8, ReduceOp::max, 100003, false, 5);
}

TEST_P(GpuHosts, TwoOfOneGpu) { check_sizes(2, 1, GetParam()); }
TEST_P(GpuHosts, ThreeOfOneGpu) { check_sizes(3, 1, GetParam()); }
TEST_P(GpuHosts, TwoOfTwoGpus) { check_sizes(2, 2, GetParam()); }
TEST_P(GpuHosts, TwoOfFourGpus) { check_sizes(2, 4, GetParam()); }

TEST_P(GpuHosts, EveryTypeAndOperatorIsRight) {
  Hosts world(2, std::min(2, gpu_count()), settings_of(GetParam()));
  for (std::size_t type = 0; type < kGpuTypeCount; ++type) {
    for (std::size_t op = 0; op < kGpuOpCount; ++op) {
      world.check(static_cast<DataType>(type), static_cast<ReduceOp>(op), 40009, op % 2 == 0, 0);
    }
  }
}

TEST_P(GpuHosts, RingTreeAndHalvingDoublingBetweenHosts) {
  for (const char* algorithm : {"ring", "tree", "halving-doubling"}) {
    Hosts world(4, 1, settings_of(GetParam(), algorithm));
    world.check(DataType::bfloat16, ReduceOp::avg, 2000003, false, 0);
    world.check(DataType::float32, ReduceOp::sum, 3, false, 0);
  }
}

TEST_P(GpuHosts, ReduceScatterAndAllGatherOfOneHostRunOnItsGpus) {
  if (GetParam() != std::string("ucx")) GTEST_SKIP() << "one host needs no fabric";
  Hosts world(1, gpu_count(), {"auto"});
  for (const std::uint64_t block : {1, 1000, 777777}) world.check_halves(block);
}

TEST_P(GpuHosts, ExplainSaysWhatCarriesTheGpusMemory) {
  Hosts world(2, 1, settings_of(GetParam()));
  const std::string said = world.explain_of_gpu_buffers(1 << 20);
  const bool direct = GetParam() == std::string("verbs");
  EXPECT_EQ(said.find("GPUDirect RDMA") != std::string::npos, direct) << said;
  EXPECT_EQ(said.find("pinned memory") != std::string::npos, !direct) << said;
  EXPECT_NE(said.find("copies of a piece, no prediction"), std::string::npos) << said;
}

TEST_P(GpuHosts, ExplainHasTheWaysBetweenHostsAndWhatACallTakes) {
  Hosts world(3, std::min(2, gpu_count()), settings_of(GetParam()));
  const bool direct = GetParam() == std::string("verbs");
  for (const std::uint64_t count : {1000, 1000003}) {
    const std::string said = world.explain_of_gpu_buffers(count * 4);
    for (const auto algorithm : plan::algorithms_of(Collective::all_reduce)) {
      const bool way = !direct || algorithm != plan::Algorithm::one_shot;
      const std::string row = fmt::format("{:<17} over", plan::to_string(algorithm));
      EXPECT_EQ(said.find(row) != std::string::npos, way) << row << " in\n" << said;
    }
    world.check(DataType::float32, ReduceOp::sum, count, false, 0);
    const auto info = world.comm(0).last_operation();
    EXPECT_GT(info.predicted_us, 0);
    const std::string taken = fmt::format("  * {:<17} over {:<5} predicted {:>10.1f} us  <- chosen",
                                          plan::to_string(info.algorithm),
                                          world.comm(0).path_name(info.path), info.predicted_us);
    EXPECT_NE(said.find(taken), std::string::npos) << taken << " in\n" << said;
    const bool kernels = gpu_count() > 1;
    EXPECT_EQ(said.find("of the GPUs: at least") != std::string::npos, kernels) << said;
  }
}

// NICs that write GPU memory write it there, too.
TEST_P(GpuHosts, HoldNoMoreGpuMemoryThanIsSaid) {
  for (const int hosts : {2, 3}) {
    Hosts world(hosts, 1, settings_of(GetParam()));
    const std::string said = world.comm(0).describe();
    const std::size_t at = said.find("GPU memory ");
    ASSERT_NE(at, std::string::npos) << said;
    const double mib = std::atof(said.c_str() + at + 11);
    EXPECT_EQ(mib, gpu::kArenaBytes >> 20) << said;
  }
}

TEST_P(GpuHosts, AllocateNoMemoryThatAllRanksMap) {
  Hosts world(2, 1, settings_of(GetParam()));
  world.for_each([&](int rank) {
    const auto memory = world.comm(rank).allocate_gpu_memory(4096);
    ASSERT_FALSE(memory);
    EXPECT_EQ(memory.error().code, Errc::unsupported);
    EXPECT_NE(memory.error().what.find("use memory of cudaMalloc"), std::string::npos);
  });
  world.check(DataType::float32, ReduceOp::sum, 1000, false, 0);
}

TEST_P(GpuHosts, ARankThatDoesNotCallIsNamed) {
  Hosts::Settings settings = settings_of(GetParam());
  settings.timeout = std::chrono::milliseconds(1500);
  for (const std::uint64_t count : {1, 3'000'000}) {
    Hosts world(2, 1, settings);
    const std::string told = world.call_alone(count);
    EXPECT_NE(told.find("rank 1"), std::string::npos) << told;
  }
}

// NICs hold back what they have written until a read pushes it: without flushes sums are wrong.
TEST_P(GpuHosts, WaitForWhatNicsHoldBack) {
  if (GetParam() != std::string("verbs")) GTEST_SKIP() << "no NIC writes the GPU's memory";
  Hosts::Settings settings = settings_of(GetParam());
  settings.flush = true;
  Hosts world(2, 1, settings);
  const std::string path = std::string(GDRX_SIM_MODULE_FOLDER) + "/libgdrx-fabric-verbs.so";
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(module, nullptr);
  auto* hold = reinterpret_cast<void (*)(int)>(dlsym(module, "gdrx_sim_hold_gpu_writes"));
  ASSERT_NE(hold, nullptr);
  hold(1);
  for (const std::uint64_t count : {1, 1021, 1000003, 6000001}) {
    world.check(DataType::float32, ReduceOp::sum, count, false, 0);
  }
  hold(0);
  dlclose(module);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuHosts, testing::Values("ucx", "verbs", "pinned"));

}  // namespace
}  // namespace gdrx::gpu
