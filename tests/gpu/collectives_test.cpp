// SPDX-License-Identifier: Apache-2.0
// Collectives that move bytes, by the C API, in streams and graphs. Skipped without a GPU.
#include "tests/gpu/collectives.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string>

namespace gdrx::gpu {
namespace {

class GpuCollectives : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

std::vector<int> counts_of_ranks() {
  return kEmulated ? std::vector{1, 2, 3, 4, 8} : std::vector{1, 2, 3, 4};
}
// The last is large enough for a broadcast in pieces, of three ranks and more.
constexpr std::uint64_t kCounts[] = {1, 3, 1000, 40'001, 1'000'001};

TEST_F(GpuCollectives, OfEqualCounts) {
  for (const int n : counts_of_ranks()) {
    World world(n);
    for (const std::uint64_t count : kCounts) {
      if (kEmulated && n > 3 && count > 50'000) continue;
      const int root = static_cast<int>(count % static_cast<std::uint64_t>(n));
      world.each([&](Member& self) {
        for (const bool in_place : {false, true}) {
          run(self, broadcast(self, count, root, in_place));
          run(self, gather(self, count, root, in_place));
          run(self, reduce(self, count, root, in_place));
          run(self, all_to_all(self, count, in_place));
          run(self, scan(self, count, true, in_place));
          run(self, scan(self, count, false, in_place));
        }
        run(self, scatter(self, count, root));
        if (count < 100'000) run(self, all_to_all(self, count, true), 1);
        if (count < 100'000) run(self, broadcast(self, count, 0, false), 3);
        if (count < 100'000) run(self, reduce(self, count, root, false), 1);
        if (count < 100'000) run(self, scan(self, count, true, true), 1);
        if (count < 100'000) run(self, scan(self, count, false, false), 3);
      });
    }
  }
}

TEST_F(GpuCollectives, OfEqualCountsInGraphs) {
  World world(3);
  world.each([&](Member& self) {
    run_captured(self, broadcast(self, 1'000'001, 1, false));
    run_captured(self, gather(self, 12'345, 2, true));
    run_captured(self, reduce(self, 12'345, 2, true));
    run_captured(self, reduce(self, 1, 0, false));
    run_captured(self, scatter(self, 12'345, 0));
    run_captured(self, all_to_all(self, 777, false));
    run_captured(self, scan(self, 12'345, true, true));
    run_captured(self, scan(self, 300'001, true, false));
    run_captured(self, scan(self, 1, false, false));
  });
}

TEST_F(GpuCollectives, WithACountForEachRank) {
  for (const int n : counts_of_ranks()) {
    World world(n);
    for (const std::size_t unit : {0, 1, 1001, 70'000}) {
      if (n > 4 && unit > 10'000) continue;
      const int root = static_cast<int>(unit % static_cast<std::size_t>(n));
      world.each([&](Member& self) {
        run(self, all_to_all_v(self, unit));
        run(self, gather_v(self, unit, root));
        run(self, scatter_v(self, unit, root));
        run(self, all_gather_v(self, unit, false));
        run(self, all_gather_v(self, unit, true));
        run(self, all_to_all_v(self, unit), 1);
        run(self, reduce_scatter_v(self, unit));
        run(self, reduce_scatter_v(self, unit), 1);
      });
    }
  }
}

TEST_F(GpuCollectives, WithACountForEachRankInGraphs) {
  World world(3);
  world.each([&](Member& self) {
    run_captured(self, all_to_all_v(self, 5000));
    run_captured(self, gather_v(self, 5000, 1));
    run_captured(self, scatter_v(self, 5000, 2));
    run_captured(self, all_gather_v(self, 5000, false));
    run_captured(self, reduce_scatter_v(self, 5000));
  });
}

TEST_F(GpuCollectives, AReduceRunsByEachAlgorithmThatHasKernels) {
  for (const char* algorithm : {"one-shot", "two-shot", "ring", "tree"}) {
    World world(3, 20, algorithm);
    world.each([&](Member& self) {
      for (const std::uint64_t count : {1, 1000, 100'001}) {
        run(self, reduce(self, count, 1, false));
        run(self, reduce(self, count, 2, true));
        run_captured(self, reduce(self, count, 0, false));
        run(self, reduce_scatter_v(self, count));
        run(self, reduce_scatter_v(self, count), 3);
      }
    });
  }
}

TEST_F(GpuCollectives, AReduceScattervInPlaceLeavesTheRestOfItsInputAlone) {
  World world(3);
  world.each([](Member& self) {
    const Sizes counts{5, 70'001, 1002};
    const Sizes begins{0, 5, 70'006};
    const auto mine = static_cast<std::size_t>(self.rank);
    constexpr std::size_t kAll = 71'008;
    Words expected;
    append(expected, self.rank, 0, kAll);
    upload(self, self.in, expected);
    for (std::size_t i = begins[mine]; i < begins[mine] + counts[mine]; ++i) {
      expected[i] = word(0, 0, i) + word(1, 0, i) + word(2, 0, i);
    }
    EXPECT_EQ(gdrxReduceScatterv(self.in, self.in + begins[mine], counts.data(), gdrxUint32,
                                 gdrxSum, self.comm, self.gdrx_stream(), nullptr),
              gdrxSuccess)
        << gdrxGetLastError(self.comm);
    Words got(kAll);
    must(cudaMemcpyAsync(got.data(), self.in, kAll * 4, cudaMemcpyDeviceToHost, self.stream),
         "copy");
    EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
    EXPECT_TRUE(got == expected);
    check_runs_on_gpu(self);
  });
}

// No rank's stream passes it before every rank's has come to it.
TEST_F(GpuCollectives, ABarrierHoldsTheStreams) {
  World world(3);
  std::atomic<int> come{0};
  world.each([&](Member& self) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * self.rank));
    ++come;
    EXPECT_EQ(gdrxBarrier(self.comm, self.gdrx_stream(), nullptr), gdrxSuccess);
    EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
    EXPECT_EQ(come, 3);
    check_runs_on_gpu(self);
  });
}

// Calls of no element do nothing anywhere.
TEST_F(GpuCollectives, OfNothing) {
  World world(2);
  world.each([&](Member& self) {
    run(self, all_to_all(self, 5, false));  // so that the last call was one of the GPUs
    run(self, broadcast(self, 0, 1, false));
    run(self, gather(self, 0, 0, false));
    run(self, all_to_all(self, 0, false));
    run(self, scatter(self, 0, 1));
    run(self, scan(self, 0, true, false));
    run(self, all_to_all(self, 7, true));
  });
}

// A rank without a byte, a buffer and a stream goes by the last collective: what it said to one of
// the others since is not known to all.
TEST_F(GpuCollectives, WhoHasNothingIsNotMisledByItsMessages) {
  World world(3, 5);
  world.each([&](Member& self) {
    Words sums(1, 1), mine(20, 3), got(20);
    EXPECT_EQ(gdrxAllReduce(sums.data(), sums.data(), 1, gdrxUint32, gdrxSum, self.comm, nullptr,
                            nullptr),
              gdrxSuccess);
    if (self.rank < 2) {
      const int other = 1 - self.rank;
      gdrxStream_t const stream = self.gdrx_stream();
      EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
      EXPECT_EQ(gdrxSend(self.in, 9, gdrxUint32, other, self.comm, stream, nullptr), gdrxSuccess);
      EXPECT_EQ(gdrxRecv(self.out, 9, gdrxUint32, other, self.comm, stream, nullptr), gdrxSuccess);
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess);
      EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
    }
    const bool has = self.rank > 0;
    const Sizes counts{0, has ? 10U : 0U, has ? 10U : 0U};
    const Sizes begins{0, 0, 10};
    EXPECT_EQ(gdrxAllToAllv(has ? mine.data() : nullptr, counts.data(), begins.data(),
                            has ? got.data() : nullptr, counts.data(), begins.data(), gdrxUint32,
                            self.comm, nullptr, nullptr),
              gdrxSuccess)
        << gdrxGetLastError(self.comm);
    EXPECT_EQ(got, has ? mine : Words(20));
  });
}

/// Rank 0 makes one call and all others another: what each of those that found it is told.
void differ(const std::function<gdrxResult_t(const Member&)>& odd,
            const std::function<gdrxResult_t(const Member&)>& all,
            const std::vector<std::string>& words) {
  World world(3);
  world.each([&](Member& self) {
    static_cast<void>(self.rank == 0 ? odd(self) : all(self));
    gdrxResult_t error = gdrxSuccess;
    for (int i = 0; i < 300 && error == gdrxSuccess; ++i) {
      EXPECT_EQ(gdrxCommGetAsyncError(self.comm, &error), gdrxSuccess);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(error, gdrxMismatch);
    const std::string told = gdrxGetLastError(self.comm);
    for (const std::string& wanted : words) {
      EXPECT_NE(told.find(wanted), std::string::npos) << wanted << " is not in: " << told;
    }
    cudaStreamSynchronize(self.stream);
  });
}

// No kernel adds by it: it goes through host memory, and is right.
TEST_F(GpuCollectives, AScanByAnOperatorWithoutKernelsGoesThroughTheHost) {
  World world(3);
  world.each([](Member& self) {
    Case what = scan(self, 1000, true, false);
    for (std::size_t i = 0; i < what.expected.size(); ++i) {
      what.expected[i] = 0;
      for (int p = 0; p <= self.rank; ++p) what.expected[i] |= word(p, 0, i);
    }
    prepare(self, what, self.in, self.out);
    EXPECT_EQ(gdrxScan(self.in, self.out, 1000, gdrxUint32, gdrxBor, self.comm, self.gdrx_stream(),
                       nullptr),
              gdrxSuccess)
        << gdrxGetLastError(self.comm);
    check(self, what, self.out);
    gdrxOpInfo_t info{};
    info.size = sizeof info;
    EXPECT_EQ(gdrxCommGetLastOp(self.comm, &info), gdrxSuccess);
    EXPECT_STRNE(info.transport, "gpu");
  });
}

gdrxResult_t broadcast_of(const Member& self, std::uint64_t count, int root) {
  return gdrxBroadcast(self.in, self.out, count, gdrxUint32, root, self.comm, self.gdrx_stream(),
                       nullptr);
}

/// Rank 0 has so many for each other.
gdrxResult_t all_to_all_v_of(const Member& self, std::size_t count) {
  const Sizes sends(3, self.rank == 0 ? count : 10);
  Sizes receives(3, 10);
  if (self.rank == 0) receives[0] = count;
  const Sizes begins{0, 1000, 2000};
  return gdrxAllToAllv(self.in, sends.data(), begins.data(), self.out, receives.data(),
                       begins.data(), gdrxUint32, self.comm, self.gdrx_stream(), nullptr);
}

TEST_F(GpuCollectives, PairsThatDifferAreNamed) {
  for (const std::size_t count : {9, 11, 900}) {
    const auto call = [&](const Member& self) { return all_to_all_v_of(self, count); };
    differ(call, call,
           {fmt::format("rank 0's allToAllv sends {} uint32 to rank ", count), "expects 10"});
  }
}

TEST_F(GpuCollectives, ThatDifferAreNamed) {
  differ([](const Member& self) { return broadcast_of(self, 100, 0); },
         [](const Member& self) { return broadcast_of(self, 200, 0); },
         {"rank 0's broadcast sends 100 uint32 to rank ", "expects 200"});
  differ([](const Member& self) { return broadcast_of(self, 100, 0); },
         [](const Member& self) { return broadcast_of(self, 100, 1); },
         {"broadcast of uint32, root 0", "broadcast of uint32, root 1"});
  differ([](const Member& self) { return broadcast_of(self, 100, 0); },
         [](const Member& self) {
           return gdrxAllReduce(self.in, self.out, 100, gdrxUint32, gdrxSum, self.comm,
                                self.gdrx_stream(), nullptr);
         },
         {"broadcast of uint32, root 0", "allReduce of 100 uint32, sum"});
  const auto reduce_to = [](int root) {
    return [root](const Member& self) {
      return gdrxReduce(self.in, self.out, 100, gdrxUint32, gdrxSum, root, self.comm,
                        self.gdrx_stream(), nullptr);
    };
  };
  differ(reduce_to(0), reduce_to(1),
         {"reduce of 100 uint32, sum, root 0", "reduce of 100 uint32, sum, root 1"});
  differ(reduce_to(0),
         [](const Member& self) { return gdrxBarrier(self.comm, self.gdrx_stream(), nullptr); },
         {"reduce of 100 uint32, sum, root 0", "called barrier"});
  const auto scan_of = [](std::size_t count, gdrxRedOp_t op) {
    return [=](const Member& self) {
      return gdrxScan(self.in, self.out, count, gdrxUint32, op, self.comm, self.gdrx_stream(),
                      nullptr);
    };
  };
  differ(scan_of(100, gdrxSum), scan_of(200, gdrxSum),
         {"rank 0's scan sends 100 uint32 to rank ", "expects 200"});
  differ(scan_of(100, gdrxSum), scan_of(100, gdrxMax),
         {"scan of uint32, sum", "scan of uint32, max"});
  differ(scan_of(100, gdrxSum),
         [](const Member& self) {
           return gdrxExscan(self.in, self.out, 100, gdrxUint32, gdrxSum, self.comm,
                             self.gdrx_stream(), nullptr);
         },
         {"scan of uint32, sum", "exscan of uint32, sum"});
  const auto scatter = [](Sizes counts) {
    return [counts](const Member& self) {
      return gdrxReduceScatterv(self.in, self.out, counts.data(), gdrxUint32, gdrxSum, self.comm,
                                self.gdrx_stream(), nullptr);
    };
  };
  differ(scatter({10, 20, 30}), scatter({20, 10, 30}), {"'s counts of reduceScatterv are not"});
}

}  // namespace
}  // namespace gdrx::gpu
