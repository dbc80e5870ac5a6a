// SPDX-License-Identifier: Apache-2.0
// Ranks that call different things on the GPUs of one host: each is told both calls, soon, whatever
// they differ in. Skipped without a GPU.
#include <chrono>
#include <thread>

#include "tests/gpu/processes.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kOdd = 2;

struct Params {
  gdrxDataType_t type = gdrxFloat32;
  gdrxRedOp_t op = gdrxSum;
  std::uint64_t count = 1000;
  bool gathers = false;
  bool scales = false;  // a sum, of products with 1
};

struct Difference {
  const char* name;
  Params all, odd;
  const char* of_all;  // as the message has it
  const char* of_odd;
};

gdrxResult_t call(const Rank_& self, const Params& what, void* data) {
  auto* const stream = reinterpret_cast<gdrxStream_t>(self.stream);
  gdrxRedOp_t op = what.op;
  const float one = 1;
  if (what.scales && gdrxRedOpCreatePreMulSum(&op, &one, what.type, self.comm) != gdrxSuccess) {
    return gdrxInternalError;
  }
  if (!what.gathers) {
    return gdrxAllReduce(data, data, what.count, what.type, op, self.comm, stream, nullptr);
  }
  return gdrxAllGather(data, static_cast<std::byte*>(data) + kBytes / 2, what.count, what.type,
                       self.comm, stream, nullptr);
}

/// Who comes last may hear of the others before.
bool call_or_be_told(const Rank_& self, const Params& what, void* data) {
  const gdrxResult_t result = call(self, what, data);
  return result == gdrxSuccess || result == gdrxMismatch;
}

bool says(const Rank_& self, const char* what) {
  return std::string(gdrxGetLastError(self.comm)).find(what) != std::string::npos;
}

/// Within two seconds, though the deadline of a call is twenty.
int expect_named(const Rank_& self, const Difference& difference) {
  gdrxResult_t error = gdrxSuccess;
  for (int i = 0; i < 200 && error == gdrxSuccess; ++i) {
    CHECK_HERE(gdrxCommGetAsyncError(self.comm, &error) == gdrxSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK_HERE(error == gdrxMismatch);
  CHECK_HERE(says(self, difference.of_all));
  CHECK_HERE(says(self, difference.of_odd));
  CHECK_HERE(says(self, "rank 2 called"));
  return 0;
}

int differ(Rank_& self, const Difference& difference, bool captured) {
  void* data = nullptr;
  CHECK_HERE(cudaMalloc(&data, kBytes) == cudaSuccess);
  CHECK_HERE(cudaMemset(data, 0, kBytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 3; ++i) CHECK_HERE(call(self, difference.all, data) == gdrxSuccess);
  CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);
  const Params& mine = self.rank == kOdd ? difference.odd : difference.all;
  if (captured) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    CHECK_HERE(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal) ==
               cudaSuccess);
    CHECK_HERE(call_or_be_told(self, mine, data));
    CHECK_HERE(cudaStreamEndCapture(self.stream, &graph) == cudaSuccess);
    CHECK_HERE(cudaGraphInstantiate(&made, graph, 0) == cudaSuccess);
    CHECK_HERE(cudaGraphLaunch(made, self.stream) == cudaSuccess);
  } else {
    CHECK_HERE(call_or_be_told(self, mine, data));
  }
  const int wrong = expect_named(self, difference);
  cudaStreamSynchronize(self.stream);  // it ends
  CHECK_HERE(gdrxCommDestroy(self.comm) == gdrxMismatch);
  self.comm = nullptr;
  cudaFree(data);
  return wrong;
}

class GpuMismatch : public GpuProcesses, public testing::WithParamInterface<Difference> {};

TEST_P(GpuMismatch, IsNamedWithBothCalls) {
  EXPECT_EQ(run([](Rank_& self) { return differ(self, GetParam(), false); }), well_);
}

TEST_P(GpuMismatch, IsNamedInAGraph) {
  EXPECT_EQ(run([](Rank_& self) { return differ(self, GetParam(), true); }), well_);
}

constexpr Params kTwo{gdrxFloat32, gdrxSum, 2, false};  // 8 bytes: the shortest call
constexpr Params kLarge{gdrxFloat32, gdrxSum, 700'000, false};

INSTANTIATE_TEST_SUITE_P(
    Of, GpuMismatch,
    testing::Values(
        Difference{
            "Operator", kTwo, {gdrxFloat32, gdrxMax, 2, false}, "2 float, sum", "2 float, max"},
        Difference{"Product",
                   kTwo,
                   {gdrxFloat32, gdrxSum, 2, false, true},
                   "2 float, sum",
                   "2 float, premulsum"},
        Difference{"Type", kTwo, {gdrxInt32, gdrxSum, 2, false}, "2 float, sum", "2 int32, sum"},
        Difference{"Count", {}, {gdrxFloat32, gdrxSum, 990, false}, "1000 float", "990 float"},
        Difference{"SizeByFar", kTwo, kLarge, "of 2 float", "of 700000 float"},
        Difference{"OperatorOfALargeCall",
                   kLarge,
                   {gdrxFloat32, gdrxMin, 700'000, false},
                   "700000 float, sum",
                   "700000 float, min"},
        Difference{"Kind",
                   {},
                   {gdrxFloat32, gdrxSum, 1000, true},
                   "allReduce of 1000 float",
                   "allGather of 1000 float"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace gdrx::gpu
