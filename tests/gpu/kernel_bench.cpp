// SPDX-License-Identifier: Apache-2.0
// Times every shape of every kernel, all ranks in this process, by graph replay: what
// collectives/gpu/choose.cpp rests on. One line a measurement: ranks bytes kernel blocks threads
// unroll tiles microseconds.
//   gpu_kernel_bench [RANKS [BYTES...]]
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

/// Of a graph.
int calls_for(std::uint64_t bytes) { return bytes > (64 << 20) ? 4 : 40; }

double time_us(const Ranks& ranks, const Shape& shape, std::uint64_t bytes, int replays,
               DataType type) {
  const auto n = static_cast<std::size_t>(ranks.size());
  const int calls = calls_for(bytes);
  std::vector<cudaGraphExec_t> graphs(n);
  std::vector<cudaEvent_t> begin(n), end(n);
  for (int r = 0; r < ranks.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    ranks.use(r);
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(ranks.stream(r), cudaStreamCaptureModeGlobal), "capture");
    for (int i = 0; i < calls; ++i) {
      ranks.launch(r, {ranks.in(r), ranks.out(r), bytes, type, ReduceOp::sum}, shape);
    }
    must(cudaStreamEndCapture(ranks.stream(r), &graph), "capture");
    must(cudaGraphInstantiate(&graphs[at], graph, 0), "instantiate");
    cudaGraphDestroy(graph);
    must(cudaEventCreate(&begin[at]), "event");
    must(cudaEventCreate(&end[at]), "event");
  }
  std::vector<double> times;
  for (int sample = 0; sample < 5; ++sample) {
    // The first replay lines the ranks up: its last call ends on all of them together.
    for (int r = 0; r < ranks.size(); ++r) {
      const auto at = static_cast<std::size_t>(r);
      ranks.use(r);
      must(cudaGraphLaunch(graphs[at], ranks.stream(r)), "launch");
      must(cudaEventRecord(begin[at], ranks.stream(r)), "event");
      for (int i = 0; i < replays; ++i)
        must(cudaGraphLaunch(graphs[at], ranks.stream(r)), "launch");
      must(cudaEventRecord(end[at], ranks.stream(r)), "event");
    }
    ranks.synchronize();
    double slowest = 0;
    for (std::size_t at = 0; at < n; ++at) {
      float ms = 0;
      must(cudaEventElapsedTime(&ms, begin[at], end[at]), "elapsed");
      slowest = std::max(slowest, ms * 1000.0 / (replays * calls));
    }
    times.push_back(slowest);
  }
  for (std::size_t at = 0; at < n; ++at) {
    cudaGraphExecDestroy(graphs[at]);
    cudaEventDestroy(begin[at]);
    cudaEventDestroy(end[at]);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void sweep(const Ranks& ranks, std::uint64_t bytes, bool narrow, DataType type) {
  const std::uint64_t packs = packs_of(bytes);
  const auto n = static_cast<std::uint64_t>(ranks.size());
  const std::uint64_t part = (packs + n - 1) / n;
  const int replays = bytes <= (1 << 20) ? 10 : bytes <= (16 << 20) ? 3 : 1;
  const auto measure = [&](const Shape& shape) {
    if (!fits(shape, ranks.size(), packs)) return;
    const double us = time_us(ranks, shape, bytes, replays, type);
    std::printf("%d %llu %s %d %d %d %d %.2f\n", ranks.size(),
                static_cast<unsigned long long>(bytes),
                std::string(to_string(shape.kernel)).c_str(), shape.blocks, shape.threads,
                shape.unroll, shape.whole || shape.tiled ? 1 : 0, us);
    std::fflush(stdout);
  };
  const int most = narrow ? 64 : 256;
  for (const int threads : {64, 128, 256, 512}) {
    for (const int blocks : {1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 128, 132, 256}) {
      if (blocks > most || blocks > ranks.host().blocks * 2 + 4) continue;
      const auto total = static_cast<std::uint64_t>(blocks) * static_cast<std::uint64_t>(threads);
      const bool wide = threads == 512 || threads == 256;
      if (total <= std::max<std::uint64_t>(packs * 2, 64) && total * 16 >= packs &&
          (wide || bytes <= 65536)) {
        measure({Kernel::one_shot, blocks, threads, 1, false});
      }
      for (const int unroll : {1, 2, 4}) {
        if (total * static_cast<std::uint64_t>(unroll) >= part && total <= part * 2) {
          measure({Kernel::two_shot, blocks, threads, unroll, false});
        }
        if (bytes >= (2 << 20) && threads >= 128 && threads <= 256 && blocks >= 32) {
          measure({Kernel::two_shot, blocks, threads, unroll, true});
          measure({Kernel::ring, blocks, threads, unroll, true});
          measure({Kernel::tree, blocks, threads, unroll, true});
          measure({Kernel::one_shot, blocks, threads, unroll, false, true});
        }
      }
    }
  }
}

}  // namespace
}  // namespace gdrx::gpu

int main(int argc, char** argv) {
  using namespace gdrx::gpu;  // NOLINT
  if (gpu_count() == 0) {
    std::fprintf(stderr, "no GPU on this machine\n");
    return 2;
  }
  const int n = argc > 1 ? std::atoi(argv[1]) : gpu_count();
  std::vector<std::uint64_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {8, 4096, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  const Ranks ranks(n, *std::max_element(sizes.begin(), sizes.end()));
  for (const std::uint64_t bytes : sizes) sweep(ranks, bytes, false, gdrx::DataType::float32);
  return 0;
}
