// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/gpu_bench.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <chrono>

namespace gdrx::bench {
namespace {

Result<void> check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return {};
  return fail(Errc::system, fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

class CudaBench final : public GpuBench {
 public:
  explicit CudaBench(cudaStream_t stream) : stream_(stream) {
    cudaEventCreate(&begin_);
    cudaEventCreate(&end_);
  }
  ~CudaBench() override {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }
  std::string device_name() const override {
    int device = 0;
    cudaDeviceProp properties{};
    if (cudaGetDevice(&device) != cudaSuccess) return "unknown GPU";
    if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return "unknown GPU";
    return properties.name;
  }
  void* stream() const noexcept override { return stream_; }
  Result<void> synchronize() override {
    return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  Result<GpuTimes> time(Mode mode, int warmup, int samples, const Enqueue& call,
                        const Refresh& refresh) override {
    cudaGraphExec_t graph = nullptr;
    if (mode == Mode::graph) graph = GDRX_TRY(capture(call));
    GpuTimes times;
    Result<void> done;
    for (int i = 0; i < warmup + samples && done; ++i) {
      if (i == warmup + samples - 1) refresh();
      auto sample = one_sample(graph, call, times.host);
      if (!sample) done = tl::unexpected(std::move(sample).error());
      if (sample && i >= warmup) times.samples.push_back(*sample);
    }
    if (graph != nullptr) cudaGraphExecDestroy(graph);
    GDRX_TRY(std::move(done));
    return times;
  }

 private:
  Result<cudaGraphExec_t> capture(const Enqueue& call) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    GDRX_TRY(check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture"));
    for (int i = 0; i < kCallsOfSample; ++i) call(stream_);
    GDRX_TRY(check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture"));
    const auto made = check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    GDRX_TRY(made);
    return ready;
  }

  Result<void> run(cudaGraphExec_t graph, const Enqueue& call) {
    if (graph != nullptr) return check(cudaGraphLaunch(graph, stream_), "cudaGraphLaunch");
    for (int i = 0; i < kCallsOfSample; ++i) call(stream_);
    return {};
  }

  Result<double> one_sample(cudaGraphExec_t graph, const Enqueue& call, double& host) {
    GDRX_TRY(run(graph, call));
    GDRX_TRY(check(cudaEventRecord(begin_, stream_), "cudaEventRecord"));
    const auto before = std::chrono::steady_clock::now();
    GDRX_TRY(run(graph, call));
    const auto spent = std::chrono::steady_clock::now() - before;
    GDRX_TRY(check(cudaEventRecord(end_, stream_), "cudaEventRecord"));
    GDRX_TRY(synchronize());
    const double us = std::chrono::duration<double, std::micro>(spent).count() / kCallsOfSample;
    host = host == 0 ? us : std::min(host, us);
    float ms = 0;
    GDRX_TRY(check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime"));
    return ms * 1000.0 / kCallsOfSample;
  }

  cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

Result<std::unique_ptr<GpuBench>> GpuBench::create(int ordinal) {
  int count = 0;
  GDRX_TRY(check(cudaGetDeviceCount(&count), "cudaGetDeviceCount"));
  if (count == 0) return fail(Errc::unsupported, "no GPU is visible in this process");
  GDRX_TRY(check(cudaSetDevice(ordinal % count), "cudaSetDevice"));
  GDRX_TRY(check(cudaFree(nullptr), "making a CUDA context"));
  cudaStream_t stream = nullptr;
  GDRX_TRY(check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate"));
  return std::unique_ptr<GpuBench>(new CudaBench(stream));
}

}  // namespace gdrx::bench
