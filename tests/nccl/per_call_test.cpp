// SPDX-License-Identifier: Apache-2.0
// Collectives with settings for one call: they do what the same ones without do, or say what is not
// there.
#include <string>

#include "tests/nccl/values.hpp"

namespace gdrx::nccl {
namespace {

class NcclPerCall : public Nccl {};

CallConfig unset() {
  CallConfig config{};
  config.size = sizeof config;
  config.magic = kConfigMagic;
  config.version = 23203;
  config.min_ctas = config.max_ctas = config.nvls_ctas = kUndefined;
  config.cga_cluster_size = config.cta_policy = kUndefined;
  config.force_algorithms = 1;
  return config;
}

TEST_F(NcclPerCall, EveryCollectiveTakesSettings) {
  World world(2);
  world.each([](const Member& self) {
    const Format& format = kFormats[kUint32];
    constexpr std::size_t kCount = 33;
    CallConfig hints = unset();
    hints.min_ctas = 2;
    hints.max_ctas = 8;
    hints.profiler_tag = 77;
    hints.algorithms = "ring";
    hints.force_algorithms = 0;
    CallConfig older = unset();
    older.size = offsetof(CallConfig, launched);
    older.launched = &older;  // behind what 2.31 has
    const auto own = [](int rank, std::size_t i) { return static_cast<double>(rank * 1000 + i); };
    const auto sum = [&](std::size_t i) { return own(0, i) + own(1, i); };
    const std::size_t mine = static_cast<std::size_t>(self.rank) * kCount;
    for (const CallConfig* config :
         {static_cast<const CallConfig*>(nullptr), static_cast<const CallConfig*>(&hints),
          static_cast<const CallConfig*>(&older)}) {
      fill(self, format, self.in, 2 * kCount, [&](std::size_t i) { return own(self.rank, i); });
      const auto gives = [&](Result result, std::size_t count, const auto& value) {
        EXPECT_EQ(result, kSuccess) << ncclGetLastError(self.comm);
        expect(self, format, self.out, count, value);
        self.upload(self.out, Bytes_(count * 4).data(), count * 4);
      };
      gives(ncclAllReduceConfig(self.in, self.out, kCount, kUint32, kSum, self.comm, self.stream,
                                config),
            kCount, sum);
      gives(ncclReduceScatterConfig(self.in, self.out, kCount, kUint32, kSum, self.comm,
                                    self.stream, config),
            kCount, [&](std::size_t i) { return sum(mine + i); });
      gives(ncclBroadcastConfig(self.in, self.out, kCount, kUint32, 1, self.comm, self.stream,
                                config),
            kCount, [&](std::size_t i) { return own(1, i); });
      const auto gathered = [&](std::size_t i) {
        return own(static_cast<int>(i / kCount), i % kCount);
      };
      gives(ncclAllGatherConfig(self.in, self.out, kCount, kUint32, self.comm, self.stream, config),
            2 * kCount, gathered);
      gives(ncclAlltoAllConfig(self.in, self.out, kCount, kUint32, self.comm, self.stream, config),
            2 * kCount,
            [&](std::size_t i) { return own(static_cast<int>(i / kCount), mine + i % kCount); });
      gives(
          ncclScatterConfig(self.in, self.out, kCount, kUint32, 0, self.comm, self.stream, config),
          kCount, [&](std::size_t i) { return own(0, mine + i); });
      const bool is_root = self.rank == 1;
      const auto nothing = [](std::size_t) { return 0; };
      const Result reduced = ncclReduceConfig(self.in, self.out, kCount, kUint32, kSum, 1,
                                              self.comm, self.stream, config);
      if (is_root) gives(reduced, kCount, sum);
      if (!is_root) gives(reduced, 0, nothing);
      const Result all =
          ncclGatherConfig(self.in, self.out, kCount, kUint32, 1, self.comm, self.stream, config);
      if (is_root) gives(all, 2 * kCount, gathered);
      if (!is_root) gives(all, 0, nothing);
    }
  });
}

TEST_F(NcclPerCall, WhatIsNotThereIsSaid) {
  World world(1);
  world.each([](const Member& self) {
    const auto told = [&](const CallConfig& config) {
      return ncclAllReduceConfig(self.in, self.out, 1, kUint32, kSum, self.comm, self.stream,
                                 &config);
    };
    const auto with = [&](auto&& change) {
      CallConfig config = unset();
      change(config);
      return told(config);
    };
    EXPECT_EQ(told(unset()), kSuccess);
    EXPECT_EQ(with([](CallConfig& config) { config.magic = 1; }), kInvalidArgument);
    EXPECT_EQ(with([](CallConfig& config) { config.size = offsetof(CallConfig, max_ctas); }),
              kInvalidArgument);
    EXPECT_EQ(with([](CallConfig& config) { config.min_ctas = 0; }), kInvalidArgument);
    EXPECT_EQ(with([](CallConfig& config) { config.max_ctas = -3; }), kInvalidArgument);
    EXPECT_EQ(with([](CallConfig& config) {
                config.min_ctas = 9;
                config.max_ctas = 8;
              }),
              kInvalidArgument);
    EXPECT_EQ(with([&](CallConfig& config) { config.extensions = &config; }), kInvalidUsage);
    EXPECT_EQ(with([&](CallConfig& config) { config.launched = &config; }), kInvalidUsage);
    EXPECT_EQ(with([](CallConfig& config) { config.algorithms = ""; }), kSuccess);
    EXPECT_EQ(with([](CallConfig& config) { config.algorithms = "ring"; }), kInvalidUsage);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("forceAlgSelection=0"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace gdrx::nccl
