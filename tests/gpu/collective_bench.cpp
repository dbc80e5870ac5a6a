// SPDX-License-Identifier: Apache-2.0
// Times collectives of GPU memory by the C API, a process for each rank: in a stream, in a graph,
// and what the host is busy for. GDRX_GPU=0 shows them staged through host memory. A line each:
// collective ranks bytes us in a stream, us in a graph (0: not captured), us of the host. Bytes are
// those of nccl-tests: of all-to-all a rank's whole buffer, of gather and scatter the root's.
//   gpu_collective_bench [RANKS [BYTES...]]
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gdrx/gdrx.h"

namespace {

void must(bool well, const char* what, gdrxComm_t comm = nullptr) {
  if (well) return;
  std::fprintf(stderr, "%s: %s\n", what, gdrxGetLastError(comm));
  std::_Exit(1);
}
void must(cudaError_t status) { must(status == cudaSuccess, cudaGetErrorString(status)); }

struct Rank {
  int rank = 0;
  int ranks = 0;
  gdrxComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  gdrxStream_t gdrx_stream() const { return reinterpret_cast<gdrxStream_t>(stream); }
};

struct Kind {
  const char* name;
  std::function<gdrxResult_t(const Rank&, std::size_t bytes)> call;
};

std::size_t block(const Rank& self, std::size_t bytes) {
  return bytes / static_cast<std::size_t>(self.ranks);
}

std::vector<Kind> kinds() {
  return {
      {"allreduce",
       [](const Rank& self, std::size_t bytes) {
         return gdrxAllReduce(self.in, self.out, bytes / 4, gdrxFloat32, gdrxSum, self.comm,
                              self.gdrx_stream(), nullptr);
       }},
      {"broadcast",
       [](const Rank& self, std::size_t bytes) {
         return gdrxBroadcast(self.in, self.out, bytes / 4, gdrxFloat32, 0, self.comm,
                              self.gdrx_stream(), nullptr);
       }},
      {"reduce",
       [](const Rank& self, std::size_t bytes) {
         return gdrxReduce(self.in, self.out, bytes / 4, gdrxFloat32, gdrxSum, 0, self.comm,
                           self.gdrx_stream(), nullptr);
       }},
      {"scan",
       [](const Rank& self, std::size_t bytes) {
         return gdrxScan(self.in, self.out, bytes / 4, gdrxFloat32, gdrxSum, self.comm,
                         self.gdrx_stream(), nullptr);
       }},
      {"exscan",
       [](const Rank& self, std::size_t bytes) {
         return gdrxExscan(self.in, self.out, bytes / 4, gdrxFloat32, gdrxSum, self.comm,
                           self.gdrx_stream(), nullptr);
       }},
      {"alltoall",
       [](const Rank& self, std::size_t bytes) {
         return gdrxAllToAll(self.in, self.out, block(self, bytes) / 4, gdrxFloat32, self.comm,
                             self.gdrx_stream(), nullptr);
       }},
      {"alltoallv",
       [](const Rank& self, std::size_t bytes) {
         const std::vector<std::size_t> counts(static_cast<std::size_t>(self.ranks),
                                               block(self, bytes) / 4);
         return gdrxAllToAllv(self.in, counts.data(), nullptr, self.out, counts.data(), nullptr,
                              gdrxFloat32, self.comm, self.gdrx_stream(), nullptr);
       }},
      {"allgather",
       [](const Rank& self, std::size_t bytes) {
         return gdrxAllGather(self.in, self.out, block(self, bytes) / 4, gdrxFloat32, self.comm,
                              self.gdrx_stream(), nullptr);
       }},
      {"gather",
       [](const Rank& self, std::size_t bytes) {
         return gdrxGather(self.in, self.out, block(self, bytes) / 4, gdrxFloat32, 0, self.comm,
                           self.gdrx_stream(), nullptr);
       }},
      {"scatter",
       [](const Rank& self, std::size_t bytes) {
         return gdrxScatter(self.in, self.out, block(self, bytes) / 4, gdrxFloat32, 0, self.comm,
                            self.gdrx_stream(), nullptr);
       }},
  };
}

using Clock = std::chrono::steady_clock;
double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Calls behind a first one, which lines the ranks up. Also what the host was busy for.
double in_stream(const Rank& self, const Kind& kind, std::size_t bytes, int calls, double& host) {
  must(kind.call(self, bytes) == gdrxSuccess, kind.name, self.comm);
  must(cudaStreamSynchronize(self.stream));
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) {
    must(kind.call(self, bytes) == gdrxSuccess, kind.name, self.comm);
  }
  host = us_since(begin) / calls;
  must(cudaStreamSynchronize(self.stream));
  return us_since(begin) / calls;
}

double in_graph(const Rank& self, const Kind& kind, std::size_t bytes, int calls) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal));
  bool captured = true;
  for (int i = 0; i < calls && captured; ++i) captured = kind.call(self, bytes) == gdrxSuccess;
  must(cudaStreamEndCapture(self.stream, &graph));
  if (!captured) return 0;
  must(cudaGraphInstantiate(&made, graph, 0));
  must(cudaGraphLaunch(made, self.stream));
  must(cudaStreamSynchronize(self.stream));
  const auto begin = Clock::now();
  must(cudaGraphLaunch(made, self.stream));
  must(cudaStreamSynchronize(self.stream));
  const double us = us_since(begin) / calls;
  cudaGraphExecDestroy(made);
  cudaGraphDestroy(graph);
  return us;
}

void live(Rank self, const gdrxUniqueId& id, const std::vector<std::size_t>& sizes) {
  int gpus = 0;
  must(cudaGetDeviceCount(&gpus));
  must(cudaSetDevice(self.rank % gpus));
  must(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking));
  const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
  for (std::byte** buffer : {&self.in, &self.out}) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, most));
    must(cudaMemset(memory, 0, most));
    *buffer = static_cast<std::byte*>(memory);
  }
  must(gdrxCommInitRank(&self.comm, self.ranks, id, self.rank, nullptr) == gdrxSuccess, "init");
  const char* staged = std::getenv("GDRX_GPU");
  for (const Kind& kind : kinds()) {
    for (const std::size_t bytes : sizes) {
      const int calls = bytes <= (1 << 20) ? 50 : 8;
      std::vector<double> streams, graphs, hosts;
      for (int sample = 0; sample < 5; ++sample) {
        double host = 0;
        streams.push_back(in_stream(self, kind, bytes, calls, host));
        hosts.push_back(host);
        const bool graph = staged == nullptr || *staged != '0';
        graphs.push_back(graph ? in_graph(self, kind, bytes, calls) : 0);
      }
      for (std::vector<double>* times : {&streams, &graphs, &hosts}) {
        std::sort(times->begin(), times->end());
      }
      if (self.rank == self.ranks - 1) {
        std::printf("%-10s %2d %10zu %10.2f %10.2f %10.2f\n", kind.name, self.ranks, bytes,
                    streams[2], graphs[2], hosts[2]);
        std::fflush(stdout);
      }
    }
  }
  must(gdrxCommDestroy(self.comm) == gdrxSuccess, "destroy");
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  std::vector<std::size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {1024, 65536, 1 << 20, 16 << 20, 64 << 20};
  std::vector<int> pipes(2);
  must(ranks > 0 && pipe(pipes.data()) == 0, "pipe");
  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      gdrxUniqueId id{};
      if (rank == 0) {
        must(gdrxGetUniqueId(&id) == gdrxSuccess, "id");
        for (int other = 1; other < ranks; ++other) {
          must(write(pipes[1], &id, sizeof id) == sizeof id, "write");
        }
      } else {
        must(read(pipes[0], &id, sizeof id) == sizeof id, "read");
      }
      Rank self;
      self.rank = rank;
      self.ranks = ranks;
      live(self, id, sizes);
      std::_Exit(0);
    }
    processes.push_back(pid);
  }
  int wrong = 0;
  for (const pid_t pid : processes) {
    int status = 0;
    waitpid(pid, &status, 0);
    wrong += status != 0 ? 1 : 0;
  }
  return wrong == 0 ? 0 : 1;
}
