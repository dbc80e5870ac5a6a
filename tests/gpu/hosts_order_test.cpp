// SPDX-License-Identifier: Apache-2.0
// GDRX_REPRODUCIBLE=1 between hosts: the bits of a sum in the order of ranks, however the ranks are
// split into hosts. Over UCX and over simulated NICs. Skipped without a GPU.
#include <fmt/format.h>

#include "collectives/reduce/reducer.hpp"
#include "tests/gpu/hosts.hpp"
#include "tests/gpu/plan_sums.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kRanks = 6;

class GpuHostOrder : public GpuHosts {
 protected:
  Hosts::Settings reproducible(const char* algorithm = "auto") const {
    Hosts::Settings settings = settings_of(GetParam(), algorithm);
    settings.reproducible = true;
    return settings;
  }
};

std::vector<std::vector<float>> noise_of_all(std::size_t count) {
  std::vector<std::vector<float>> inputs;
  for (int rank = 0; rank < kRanks; ++rank) inputs.push_back(noise(rank, count));
  return inputs;
}

/// The upper halves of floats are bfloat16.
std::vector<std::vector<std::uint16_t>> upper_halves(const std::vector<std::vector<float>>& all) {
  std::vector<std::vector<std::uint16_t>> halves;
  for (const auto& values : all) {
    halves.emplace_back();
    for (const float value : values) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      halves.back().push_back(static_cast<std::uint16_t>(bits >> 16U));
    }
  }
  return halves;
}

template <class T>
std::vector<T> sum_in_order(DataType type, ReduceOp op, const std::vector<std::vector<T>>& inputs) {
  std::vector<const void*> sources;
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<T> sum(inputs[0].size());
  reduce::reduce(sum.data(), sources, sum.size(), type, op,
                 op == ReduceOp::avg ? static_cast<int>(inputs.size()) : 0);
  return sum;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Ranks of each host.
std::vector<std::vector<int>> splits() {
  const int most = std::min(kRanks, gpu_count());
  std::vector<std::vector<int>> all{{1, 1, 1, 1, 1, 1}};
  if (most >= 2) all.insert(all.end(), {{2, 2, 2}, {1, 2, 1, 2}});
  if (most >= 5) all.insert(all.end(), {{3, 3}, {5, 1}});
  return all;
}

TEST_P(GpuHostOrder, NoSplitIntoHostsChangesABit) {
  const auto inputs = noise_of_all(1'200'007);
  const auto halves = upper_halves(inputs);
  const auto floats = sum_in_order(DataType::float32, ReduceOp::sum, inputs);
  const auto average = sum_in_order(DataType::bfloat16, ReduceOp::avg, halves);
  for (const auto& ranks : splits()) {
    Hosts world(ranks, reproducible());
    const std::string of = fmt::format("{} hosts, the last of {}", ranks.size(), ranks.back());
    EXPECT_TRUE(same_bits(world.reduce(DataType::float32, ReduceOp::sum, inputs), floats)) << of;
    EXPECT_TRUE(same_bits(world.reduce(DataType::bfloat16, ReduceOp::avg, halves), average)) << of;
    world.check(DataType::float16, ReduceOp::max, 3, true, 2);
  }
}

TEST_P(GpuHostOrder, NorDoSizesAndAlgorithms) {
  const auto all = noise_of_all(70'000);
  const auto expected = sum_in_order(DataType::float32, ReduceOp::sum, all);
  for (const char* algorithm : {"one-shot", "two-shot"}) {
    Hosts world(std::vector<int>(kRanks, 1), reproducible(algorithm));
    for (const std::size_t count : {3, 1000, 70'000}) {
      auto inputs = all;
      for (auto& input : inputs) input.resize(count);
      const std::vector<float> first(expected.begin(),
                                     expected.begin() + static_cast<std::ptrdiff_t>(count));
      EXPECT_TRUE(same_bits(world.reduce(DataType::float32, ReduceOp::sum, inputs), first))
          << algorithm << ", " << count;
    }
  }
}

// Else the first test would prove nothing.
TEST_P(GpuHostOrder, HostByHostGivesOtherBits) {
  if (gpu_count() < 3) GTEST_SKIP() << "needs 3 GPUs";
  const auto inputs = noise_of_all(1000);
  Hosts world(2, 3, settings_of(GetParam()));
  EXPECT_FALSE(same_bits(world.reduce(DataType::float32, ReduceOp::sum, inputs),
                         sum_in_order(DataType::float32, ReduceOp::sum, inputs)));
}

TEST_P(GpuHostOrder, HostsOfDifferentSizesNeedNotBeReproducible) {
  if (gpu_count() < 2) GTEST_SKIP() << "needs 2 GPUs";
  Hosts world({2, 1}, settings_of(GetParam()));
  for (const std::uint64_t count : {1, 1021, 1'000'003}) {
    world.check(DataType::float32, ReduceOp::sum, count, false, 0);
  }
  const std::string said = world.explain_of_gpu_buffers(1000);
  EXPECT_NE(said.find("each GPU copies them"), std::string::npos) << said;
}

TEST_P(GpuHostOrder, ExplainHasTheWaysThatKeepTheOrder) {
  Hosts world(2, std::min(2, gpu_count()), reproducible());
  const std::string said = world.explain_of_gpu_buffers(1 << 20);
  EXPECT_NE(said.find("* two-shot"), std::string::npos) << said;
  for (const char* other : {"ring ", "tree ", "halving-doubling "}) {
    EXPECT_EQ(said.find(other), std::string::npos) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuHostOrder, testing::Values("ucx", "verbs", "pinned"));

}  // namespace
}  // namespace gdrx::gpu
