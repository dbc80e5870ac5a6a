// SPDX-License-Identifier: Apache-2.0
// Calls that run from graphs: every type and operator, several calls in one, other values at each
// replay.
#include "tests/nccl/values.hpp"

namespace gdrx::nccl {
namespace {

class NcclGraphs : public NcclRanks {};
INSTANTIATE_TEST_SUITE_P(Of, NcclGraphs, testing::Values(2, 4));

/// Recorded from a rank's stream.
class Graph {
 public:
  template <class Body>
  Graph(const Member& self, Body&& body) : stream_(self.stream) {
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    body();
    cudaGraph_t graph = nullptr;
    must(cudaStreamEndCapture(stream_, &graph), "capture");
    must(cudaGraphInstantiate(&made_, graph, 0), "instantiate");
    cudaGraphDestroy(graph);
  }
  ~Graph() { cudaGraphExecDestroy(made_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() const {
    must(cudaGraphLaunch(made_, stream_), "launch");
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t made_ = nullptr;
};

TEST_P(NcclGraphs, ReduceEveryTypeWithEveryOperator) {
  World world(GetParam());
  constexpr std::size_t kCount = 99;
  world.each([&](const Member& self) {
    const auto ranks = static_cast<std::size_t>(self.ranks);
    const auto mine = static_cast<std::size_t>(self.rank);
    for (const Format& format : kFormats) {
      const std::size_t block = kCount * format.size;
      std::byte* const reduced = self.out + (64 << 10);
      std::byte* const scattered = self.out + (128 << 10);
      for (Operator op = kSum; op < kOperators; ++op) {
        const int root = static_cast<int>(op) % self.ranks;
        const Graph graph(self, [&] {
          EXPECT_EQ(ncclAllReduce(self.in, self.out, kCount * ranks, format.type, op, self.comm,
                                  self.stream),
                    kSuccess)
              << ncclGetLastError(self.comm);
          EXPECT_EQ(
              ncclReduce(self.in, reduced, kCount, format.type, op, root, self.comm, self.stream),
              kSuccess);
          EXPECT_EQ(ncclReduceScatter(self.in, scattered, kCount, format.type, op, self.comm,
                                      self.stream),
                    kSuccess);
        });
        for (std::size_t replay = 0; replay < 2; ++replay) {
          fill(self, format, self.in, kCount * ranks,
               [&](std::size_t i) { return element(self.rank, i + replay); });
          for (std::byte* const to : {self.out, reduced, scattered}) {
            self.upload(to, Bytes_(block).data(), block);
          }
          graph.replay();
          const auto all = [&](std::size_t i) { return combine(op, self.ranks, i + replay); };
          expect(self, format, self.out, kCount * ranks, all, op == kAvg);
          if (self.rank == root) expect(self, format, reduced, kCount, all, op == kAvg);
          expect(
              self, format, scattered, kCount,
              [&](std::size_t i) { return all(mine * kCount + i); }, op == kAvg);
        }
      }
    }
  });
}

TEST_P(NcclGraphs, OneCallTakesWhatTheOneBeforeItGives) {
  World world(GetParam());
  world.each([&](const Member& self) {
    const Format& format = kFormats[kFloat32];
    constexpr std::size_t kCount = 99;
    const Graph graph(self, [&] {
      EXPECT_EQ(ncclAllReduce(self.in, self.out, kCount, kFloat32, kMax, self.comm, self.stream),
                kSuccess)
          << ncclGetLastError(self.comm);
      EXPECT_EQ(ncclAllGather(self.out, self.out + 4096, kCount, kFloat32, self.comm, self.stream),
                kSuccess);
    });
    for (std::size_t replay = 0; replay < 2; ++replay) {
      fill(self, format, self.in, kCount,
           [&](std::size_t i) { return element(self.rank, i + replay); });
      graph.replay();
      expect(self, format, self.out + 4096, kCount * static_cast<std::size_t>(self.ranks),
             [&](std::size_t i) { return combine(kMax, self.ranks, i % kCount + replay); });
    }
  });
}

/// Each replay reads the factor anew; an operator may be made while the stream is captured.
TEST_P(NcclGraphs, MultiplyBeforeTheyAdd) {
  World world(GetParam());
  world.each([&](const Member& self) {
    const Format& format = kFormats[kFloat32];
    constexpr std::size_t kCount = 99;
    const std::size_t mine = kCount * static_cast<std::size_t>(self.rank);
    std::byte* const on_gpu = self.in + kRoom - 8;
    std::byte* const scattered = self.out + kRoom / 2;
    float scalar = static_cast<float>(self.rank) + 1;
    Operator fixed = 0, read = 0;
    const Graph graph(self, [&] {
      EXPECT_EQ(ncclRedOpCreatePreMulSum(&fixed, &scalar, kFloat32, kScalarHost, self.comm),
                kSuccess);
      EXPECT_EQ(ncclRedOpCreatePreMulSum(&read, on_gpu, kFloat32, kScalarDevice, self.comm),
                kSuccess)
          << ncclGetLastError(self.comm);
      EXPECT_EQ(ncclAllReduce(self.in, self.out, kCount, kFloat32, fixed, self.comm, self.stream),
                kSuccess)
          << ncclGetLastError(self.comm);
      EXPECT_EQ(
          ncclReduceScatter(self.in, scattered, kCount, kFloat32, read, self.comm, self.stream),
          kSuccess)
          << ncclGetLastError(self.comm);
    });
    for (std::size_t replay = 0; replay < 3; ++replay) {
      const auto sum = [&](std::size_t i, double more) {
        double all = 0;
        for (int r = 0; r < self.ranks; ++r) all += (r + 1 + more) * element(r, i + replay);
        return all;
      };
      fill(self, format, self.in, kCount * static_cast<std::size_t>(self.ranks),
           [&](std::size_t i) { return element(self.rank, i + replay); });
      const float now = scalar + static_cast<float>(replay);
      self.upload(on_gpu, &now, sizeof now);
      graph.replay();
      expect(self, format, self.out, kCount, [&](std::size_t i) { return sum(i, 0); });
      expect(self, format, scattered, kCount,
             [&](std::size_t i) { return sum(mine + i, static_cast<double>(replay)); });
    }
    EXPECT_EQ(ncclRedOpDestroy(fixed, self.comm), kSuccess);
    EXPECT_EQ(ncclRedOpDestroy(read, self.comm), kSuccess);
  });
}

}  // namespace
}  // namespace gdrx::nccl
