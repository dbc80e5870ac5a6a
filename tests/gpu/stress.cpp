// SPDX-License-Identifier: Apache-2.0
// gpu_stress CALLS [RANKS]: back-to-back calls with random delays on each rank, every word of every
// output checked on the GPU. The race detector of one GPU does not see flags between GPUs.
#include <cstdio>

#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kCallsOfGraph = 200;

// Of two ranks, one-shot in tiles: of many blocks, or of so many bytes that the ranks have to tell
// each other of room.
constexpr Shape kInTiles[] = {{Kernel::one_shot, 5, 64, 1, false, true},
                              {Kernel::one_shot, 100, 128, 2, false, true},
                              {Kernel::one_shot, 130, 256, 2, false, true}};
constexpr std::uint32_t kManyWords = 3000000;

// Sizes and kernels alternate within the graph.
void record(const Ranks& ranks, int r, StressState* state) {
  constexpr std::uint32_t kWords[] = {1, 1024, 31, 4096, 257, 16384};
  auto* in = reinterpret_cast<std::uint32_t*>(ranks.in(r));
  auto* out = reinterpret_cast<std::uint32_t*>(ranks.out(r));
  for (int i = 0; i < kCallsOfGraph; ++i) {
    const bool many = ranks.size() == 2 && i % 100 == 99;
    const std::uint32_t words = many ? kManyWords : i % 50 == 49 ? 60000 : kWords[i % 6];
    const auto kernel = i / 7 % 16 == 0   ? Kernel::ring
                        : i / 7 % 16 == 8 ? Kernel::tree
                        : i / 7 % 2 == 0  ? Kernel::one_shot
                                          : Kernel::two_shot;
    auto shape = shape_of(kernel, ranks.host(), words * 4ULL);
    if (!shape) shape = choose(ranks.host(), words * 4ULL);
    if (ranks.size() == 2 && (many || i / 7 % 4 == 3)) {
      shape = kInTiles[i % 3];
      shape->blocks = std::min(shape->blocks, ranks.host().blocks);
    }
    enqueue_fill(in, words, r, 2000, state, ranks.stream(r));
    ranks.launch(r, {in, out, words * 4ULL, DataType::uint32, ReduceOp::sum}, *shape);
    enqueue_check(out, words, ranks.size(), state, ranks.stream(r));
  }
}

int run(std::uint64_t calls, int n) {
  const Ranks ranks(n, kManyWords * 4ULL, 60);
  std::vector<StressState*> states(static_cast<std::size_t>(n));
  std::vector<cudaGraphExec_t> graphs(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    const auto at = static_cast<std::size_t>(r);
    ranks.use(r);
    states[at] = allocate<StressState>(1);
    load_delays();
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(ranks.stream(r), cudaStreamCaptureModeGlobal), "capture");
    record(ranks, r, states[at]);
    must(cudaStreamEndCapture(ranks.stream(r), &graph), "capture");
    must(cudaGraphInstantiate(&graphs[at], graph, 0), "instantiate");
  }
  const std::uint64_t replays = (calls + kCallsOfGraph - 1) / kCallsOfGraph;
  for (std::uint64_t i = 0; i < replays; ++i) {
    for (int r = 0; r < n; ++r) {
      ranks.use(r);
      must(cudaGraphLaunch(graphs[static_cast<std::size_t>(r)], ranks.stream(r)), "launch");
    }
    if (i % 64 == 63) ranks.synchronize();
    if (i % 5000 == 4999)
      std::fprintf(stderr, "%llu calls\n",
                   static_cast<unsigned long long>((i + 1) * kCallsOfGraph));
  }
  ranks.synchronize();
  std::uint64_t wrong = 0;
  for (int r = 0; r < n; ++r) {
    StressState state{};
    ranks.use(r);
    must(cudaMemcpy(&state, states[static_cast<std::size_t>(r)], sizeof state,
                    cudaMemcpyDeviceToHost),
         "copy");
    if (ranks.path(r).kernel_error().happened || state.iteration != replays * kCallsOfGraph)
      ++wrong;
    wrong += state.wrong;
    if (state.wrong > 0) {
      std::printf("rank %d: first wrong in call %llu\n", r,
                  static_cast<unsigned long long>(state.first_wrong - 1));
    }
  }
  std::printf("%llu calls, %d ranks, %llu wrong words\n",
              static_cast<unsigned long long>(replays * kCallsOfGraph), n,
              static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gdrx::gpu

int main(int argc, char** argv) {
  if (gdrx::gpu::gpu_count() == 0) {
    std::fprintf(stderr, "no GPU on this machine\n");
    return 2;
  }
  const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100000;
  return gdrx::gpu::run(calls, argc > 2 ? std::atoi(argv[2]) : gdrx::gpu::gpu_count());
}
