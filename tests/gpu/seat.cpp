// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/seat.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

namespace gdrx::crowd {
namespace {

/// One of a communicator's ranks, with what it needs.
struct Rank {
  int communicator = 0;
  int rank = 0;
  int ranks = 0;
  gdrxComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;
  std::uint32_t* in = nullptr;
  std::uint32_t* out = nullptr;
};

bool well(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  return false;
}
bool well(gdrxResult_t status, const char* what, gdrxComm_t comm = nullptr) {
  if (status == gdrxSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, gdrxGetLastError(comm));
  return false;
}

enum class Call { all_reduce, all_to_all, all_gather, reduce_scatter, pair, count };

/// Of a process and one of its GPUs: its ranks of all communicators that have the GPU.
class Seat {
 public:
  Seat(const Options& options, int process, int gpu, Board& board)
      : options_(options), process_(process), gpu_(gpu), board_(board) {}

  void live() {
    if (!begin() || !run()) ++board_.failed;
    for (Rank& one : ranks_) end(one);
  }

 private:
  bool begin() {
    if (!well(cudaSetDevice(gpu_), "cudaSetDevice")) return false;
    for (int c = 0; c < options_.communicators; ++c) {
      const std::vector<int> gpus = gpus_of(c);
      const auto at = std::find(gpus.begin(), gpus.end(), gpu_);
      if (at == gpus.end()) continue;
      Rank one;
      one.communicator = c;
      one.ranks = static_cast<int>(gpus.size()) * options_.processes;
      one.rank = static_cast<int>(at - gpus.begin()) * options_.processes + process_;
      if (!join(one)) return false;
      ranks_.push_back(one);
    }
    return true;
  }

  std::vector<int> gpus_of(int communicator) const {
    if (options_.layout == "pairs" && options_.gpus > 1) {
      return {communicator % options_.gpus, (communicator + 1) % options_.gpus};
    }
    std::vector<int> all(static_cast<std::size_t>(options_.gpus));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }

  bool join(Rank& one) const {
    void* memory[2] = {};
    for (void*& each : memory) {
      if (!well(cudaMalloc(&each, options_.bytes), "cudaMalloc")) return false;
    }
    one.in = static_cast<std::uint32_t*>(memory[0]);
    one.out = static_cast<std::uint32_t*>(memory[1]);
    std::vector<std::uint32_t> data(words());
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = value(one, one.rank, i);
    if (!well(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking), "cudaStreamCreate") ||
        !well(cudaMemcpy(one.in, data.data(), options_.bytes, cudaMemcpyHostToDevice), "copy")) {
      return false;
    }
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.timeout_seconds = options_.timeout_s;
    const auto at = static_cast<std::size_t>(one.communicator);
    return well(gdrxCommInitRank(&one.comm, one.ranks, board_.ids[at], one.rank, &config),
                "gdrxCommInitRank");
  }

  std::size_t words() const { return static_cast<std::size_t>(options_.bytes / 4); }
  static std::uint32_t value(const Rank& one, int rank, std::size_t i) {
    return static_cast<std::uint32_t>(i * 2654435761U) + static_cast<std::uint32_t>(rank * 7919) +
           static_cast<std::uint32_t>(one.communicator);
  }

  /// All ranks of a communicator make the same call in a round.
  Call call_of(int round, const Rank& one) const {
    for (int i = 0; i < static_cast<int>(Call::count); ++i) {
      if (options_.collective == name_of(static_cast<Call>(i))) return static_cast<Call>(i);
    }
    return static_cast<Call>((round + one.communicator) % static_cast<int>(Call::count));
  }
  static const char* name_of(Call call) {
    constexpr const char* kNames[] = {"allreduce", "alltoall", "allgather", "reducescatter",
                                      "sendrecv"};
    return kNames[static_cast<int>(call)];
  }

  /// Elements of a rank's part.
  std::size_t part(const Rank& one) const { return words() / static_cast<std::size_t>(one.ranks); }

  gdrxResult_t post(Call call, const Rank& one) const {
    auto* const stream = reinterpret_cast<gdrxStream_t>(one.stream);
    switch (call) {
      case Call::all_reduce:
        return gdrxAllReduce(one.in, one.out, words(), gdrxUint32, gdrxSum, one.comm, stream,
                             nullptr);
      case Call::all_to_all:
        return gdrxAllToAll(one.in, one.out, part(one), gdrxUint32, one.comm, stream, nullptr);
      case Call::all_gather:
        return gdrxAllGather(one.in, one.out, part(one), gdrxUint32, one.comm, stream, nullptr);
      case Call::reduce_scatter:
        return gdrxReduceScatter(one.in, one.out, part(one), gdrxUint32, gdrxSum, one.comm, stream,
                                 nullptr);
      case Call::pair:
      case Call::count:
        break;
    }
    gdrxGroupStart();
    gdrxSend(one.in, words(), gdrxUint32, (one.rank + 1) % one.ranks, one.comm, stream, nullptr);
    gdrxRecv(one.out, words(), gdrxUint32, (one.rank + one.ranks - 1) % one.ranks, one.comm, stream,
             nullptr);
    return gdrxGroupEnd();
  }

  /// Element `i` of a call's output; those that it leaves alone are not asked for.
  std::uint32_t expected(Call call, const Rank& one, std::size_t i) const {
    const std::size_t of = part(one);
    const auto self = static_cast<std::size_t>(one.rank);
    switch (call) {
      case Call::all_to_all:
        return value(one, static_cast<int>(i / of), self * of + i % of);
      case Call::all_gather:
        return value(one, static_cast<int>(i / of), i % of);
      case Call::pair:
        return value(one, (one.rank + one.ranks - 1) % one.ranks, i);
      case Call::all_reduce:
      case Call::reduce_scatter:
      case Call::count:
        break;
    }
    std::uint32_t sum = 0;
    const std::size_t at = call == Call::reduce_scatter ? self * of + i : i;
    for (int rank = 0; rank < one.ranks; ++rank) sum += value(one, rank, at);
    return sum;
  }
  std::size_t written(Call call, const Rank& one) const {
    if (call == Call::all_reduce || call == Call::pair) return words();
    if (call == Call::reduce_scatter) return part(one);
    return part(one) * static_cast<std::size_t>(one.ranks);
  }

  bool capture(Rank& one, Call call) const {
    cudaGraph_t graph = nullptr;
    const bool made =
        well(cudaStreamBeginCapture(one.stream, cudaStreamCaptureModeThreadLocal), "capture") &&
        well(post(call, one), "a captured call", one.comm) &&
        well(cudaStreamEndCapture(one.stream, &graph), "capture") &&
        well(cudaGraphInstantiate(&one.graph, graph, 0), "cudaGraphInstantiate");
    if (graph != nullptr) cudaGraphDestroy(graph);
    return made;
  }

  /// In which order this GPU comes to its communicators.
  std::vector<std::size_t> order_of(int round) const {
    std::vector<std::size_t> order(ranks_.size());
    std::iota(order.begin(), order.end(), 0);
    if (order.empty() || options_.order == "same") return order;
    const int place = process_ * options_.gpus + gpu_;
    if (options_.order == "turned") {
      const auto by = static_cast<std::size_t>(place + round) % order.size();
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(by), order.end());
    } else if (order.size() <= 4) {  // each of this GPU with each of the others, in turn
      const int orders = order.size() <= 2   ? static_cast<int>(order.size())
                         : order.size() == 3 ? 6
                                             : 24;
      int number = round;
      for (int i = 0; i < place; ++i) number /= orders;
      for (int i = (number + 2 * place) % orders; i > 0; --i) {
        std::next_permutation(order.begin(), order.end());
      }
    } else {
      std::mt19937 random(static_cast<unsigned>(round * 1000 + place));
      std::shuffle(order.begin(), order.end(), random);
    }
    return order;
  }

  bool run() {
    for (Rank& one : ranks_) {
      if (options_.graphs && !capture(one, call_of(0, one))) return false;
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (const std::size_t at : order_of(round)) {
        const Rank& one = ranks_[at];
        if (options_.graphs ? !well(cudaGraphLaunch(one.graph, one.stream), "cudaGraphLaunch")
                            : !well(post(call_of(round, one), one), "a call", one.comm)) {
          return false;
        }
      }
      for (const Rank& one : ranks_) {
        if (!check(one, call_of(options_.graphs ? 0 : round, one))) return false;
      }
    }
    board_.finished += static_cast<int>(ranks_.size());
    return true;
  }

  bool check(const Rank& one, Call call) const {
    if (!well(cudaStreamSynchronize(one.stream), "cudaStreamSynchronize")) return false;
    gdrxResult_t error = gdrxSuccess;
    gdrxCommGetAsyncError(one.comm, &error);
    if (!well(error, name_of(call), one.comm)) return false;
    std::vector<std::uint32_t> got(written(call, one));
    if (!well(cudaMemcpyAsync(got.data(), one.out, got.size() * 4, cudaMemcpyDeviceToHost,
                              one.stream),
              "copy") ||
        !well(cudaStreamSynchronize(one.stream), "copy")) {
      return false;
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected(call, one, i)) continue;
      std::fprintf(stderr, "%s of communicator %d, rank %d: element %zu is wrong\n", name_of(call),
                   one.communicator, one.rank, i);
      ++board_.wrong;
      return true;
    }
    return true;
  }

  static void end(Rank& one) {
    if (one.comm != nullptr) gdrxCommDestroy(one.comm);
    if (one.graph != nullptr) cudaGraphExecDestroy(one.graph);
    if (one.stream != nullptr) cudaStreamDestroy(one.stream);
    cudaFree(one.in);
    cudaFree(one.out);
  }

  const Options& options_;
  int process_;
  int gpu_;
  Board& board_;
  std::vector<Rank> ranks_;
};

}  // namespace

void live_on_gpu(const Options& options, int process, int gpu, Board& board) {
  Seat(options, process, gpu, board).live();
}

}  // namespace gdrx::crowd
