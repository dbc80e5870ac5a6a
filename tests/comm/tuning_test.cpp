// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/tuning.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace gdrx {
namespace {

using plan::Algorithm;

tune::Table sample() {
  tune::Table table{{"AMD EPYC", 2, "NVIDIA H200"}, {}};
  table.curves.push_back({"shm", Algorithm::one_shot, 2, 1, {{8, 1}}});
  table.curves.push_back({"gpu", Algorithm::one_shot, 2, 1, {{8, 2}}});
  table.curves.push_back({"gpu", Algorithm::two_shot, 2, 1, {{8, 3}}});
  table.curves.push_back({"gpu", Algorithm::ring, 2, 1, {{8, 4}}});
  table.curves.push_back({"gpu-registered", Algorithm::two_shot, 2, 1, {{8, 6}}});
  table.curves.push_back({"shm", Algorithm::one_shot, 4, 1, {{8, 5}}});
  return table;
}

// Two ranks, each with a GPU of its own.
std::vector<Hello> two_ranks() {
  std::vector<Hello> ranks(2);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i].cpu = "AMD EPYC";
    ranks[i].gpu_name = "NVIDIA H200";
    ranks[i].gpu.process = 1 + i;
    ranks[i].gpu.processors = 132;
    ranks[i].gpu.device[0] = static_cast<std::uint8_t>(i);
  }
  return ranks;
}

class TuningOfAFile : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_) << tune::to_json(sample());
    auto loaded = Tuning::load(file_);
    ASSERT_TRUE(loaded) << loaded.error().what;
    tuning_ = *std::move(loaded);
    machine_.ranks = 2;
    machine_.cpus = 2;
  }
  void TearDown() override { std::remove(file_.c_str()); }
  bool has_gpu_times(const std::vector<Hello>& ranks, int blocks = 131) const {
    gpu::Host host{2, blocks, false};
    const bool said = !tuning_.gpu(ranks, host).empty();
    EXPECT_EQ(said, !host.measured[0].empty());
    return said;
  }
  std::string file_ = testing::TempDir() + "gdrx_tuning_" + std::to_string(getpid());
  Tuning tuning_;
  Machine machine_;
  std::vector<std::string> warnings_;
  Log log_{Level::warn, [this](Level, std::string_view line) { warnings_.emplace_back(line); }};
};

TEST_F(TuningOfAFile, GivesTheTimesOfThisManyRanks) {
  const auto measured = tuning_.host(two_ranks(), machine_, log_);
  ASSERT_EQ(measured.curves.size(), 1U);  // the kernels' are for GPU buffers
  EXPECT_EQ(measured.by, "GDRX_TUNE_FILE=" + file_);
  EXPECT_EQ(measured.none, "");
  machine_.ranks = 3;
  const auto other = tuning_.host(two_ranks(), machine_, log_);
  EXPECT_TRUE(other.curves.empty());
  EXPECT_NE(other.none.find("no times of host memory for 3 ranks"), std::string::npos);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(TuningOfAFile, OfAHostWithMoreCpusIsNotUsedAndThatIsSaid) {
  machine_.cpus = 64;
  EXPECT_TRUE(tuning_.host(two_ranks(), machine_, log_).curves.empty());
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("2 CPUs a host, here are 64"), std::string::npos) << warnings_[0];
}

TEST_F(TuningOfAFile, OfGpusAloneSaysNothingOfTheCpus) {
  tune::Table table = sample();
  std::erase_if(table.curves, [](const auto& curve) { return curve.transport == "shm"; });
  std::ofstream(file_) << tune::to_json(table);
  machine_.cpus = 64;
  EXPECT_TRUE(Tuning::load(file_)->host(two_ranks(), machine_, log_).curves.empty());
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(TuningOfAFile, GivesEachKernelItsTimes) {
  gpu::Host host{2, 131, false};
  EXPECT_EQ(tuning_.gpu(two_ranks(), host), "GDRX_TUNE_FILE=" + file_);
  const auto& measured = host.measured;
  const auto time_of = [&](gpu::Kernel k) { return measured[gpu::place_of(k)][0].us; };
  EXPECT_EQ(time_of(gpu::Kernel::one_shot), 2);
  EXPECT_EQ(time_of(gpu::Kernel::two_shot), 3);
  EXPECT_EQ(time_of(gpu::Kernel::ring), 4);
  EXPECT_EQ(time_of(gpu::Kernel::direct), 6);
  const gpu::Prediction best = gpu::best(host, 8, true);
  EXPECT_TRUE(best.measured);
  EXPECT_EQ(best.us, 2);
  host.measured[gpu::place_of(gpu::Kernel::direct)][0].us = 1;
  EXPECT_EQ(gpu::best(host, 8, true).shape.kernel, gpu::Kernel::direct);
  EXPECT_EQ(gpu::best(host, 8, false).shape.kernel, gpu::Kernel::one_shot);
}

TEST_F(TuningOfAFile, HasNoTimesForGpusThatAreNotAsTheyWereMeasured) {
  ASSERT_TRUE(has_gpu_times(two_ranks()));
  EXPECT_FALSE(has_gpu_times(two_ranks(), 66)) << "half of the processors";
  std::vector<Hello> ranks = two_ranks();
  ranks[1].gpu_name = "NVIDIA H100";
  EXPECT_FALSE(has_gpu_times(ranks)) << "two kinds";
  ranks[0].gpu_name = "NVIDIA H100";
  EXPECT_FALSE(has_gpu_times(ranks)) << "another kind";
  ranks = two_ranks();
  ranks[1].gpu.device = ranks[0].gpu.device;
  EXPECT_FALSE(has_gpu_times(ranks)) << "two ranks on one GPU";
}

TEST(Tuning, WithoutAFileHasNoFingerprintAndAWrongFileIsNamed) {
  const auto none = Tuning::load("");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->fingerprint(), 0U);
  const auto wrong = Tuning::load("/dev/null");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().what, "GDRX_TUNE_FILE: /dev/null is not a file");
}

}  // namespace
}  // namespace gdrx
