// SPDX-License-Identifier: Apache-2.0
// Kernels are the lowering of plans that verify() proves: they add in the plans' order, bit by bit.
// Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>

#include "collectives/gpu/lowering.hpp"
#include "tests/gpu/plan_sums.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

struct Case {
  Kernel kernel;
  plan::Algorithm algorithm;
  bool by_bus;  // whose positions are not ranks
};
constexpr Case kCases[] = {{Kernel::one_shot, plan::Algorithm::one_shot, false},
                           {Kernel::two_shot, plan::Algorithm::two_shot, false},
                           {Kernel::ring, plan::Algorithm::ring, true},
                           {Kernel::tree, plan::Algorithm::tree, true}};

void check(const Ranks& ranks, const Case& what, std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  const auto shape = shape_of(what.kernel, ranks.host(), bytes);
  ASSERT_TRUE(shape);
  std::vector<std::vector<float>> inputs;
  for (int r = 0; r < ranks.size(); ++r) {
    inputs.push_back(noise(r, count));
    ranks.use(r);
    must(cudaMemcpy(ranks.in(r), inputs.back().data(), bytes, cudaMemcpyHostToDevice), "copy");
  }
  for (int r = 0; r < ranks.size(); ++r) {
    ranks.launch(r, {ranks.in(r), ranks.out(r), bytes, DataType::float32, ReduceOp::sum}, *shape);
  }
  ranks.synchronize();
  std::vector<Ticket> tickets;
  for (int r = 0; r < ranks.size(); ++r) tickets.push_back(ranks.path(r).ticket());
  const auto expected =
      sums_by_plan(what.algorithm, what.by_bus ? in_order(inputs, positions_of(tickets)) : inputs);
  for (int r = 0; r < ranks.size(); ++r) {
    std::vector<float> output(count);
    ranks.use(r);
    must(cudaMemcpy(output.data(), ranks.out(r), bytes, cudaMemcpyDeviceToHost), "copy");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (std::memcmp(&output[i], &expected[i], sizeof(float)) != 0) ++wrong;
    }
    EXPECT_EQ(wrong, 0U) << to_string(what.kernel) << ", rank " << r << " of " << ranks.size();
  }
}

TEST(GpuPlans, EveryKernelAddsAsItsPlanSays) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  for (const int n : rank_counts()) {
    if (n == 1) continue;
    const Ranks ranks(n, 1 << 20);
    // One tile, whose parts are the plans' chunks: whole packs, an equal number of each.
    const std::size_t count = static_cast<std::size_t>(n) * 2 * 4 * 64;
    for (const Case& what : kCases) check(ranks, what, count);
  }
}

}  // namespace
}  // namespace gdrx::gpu
