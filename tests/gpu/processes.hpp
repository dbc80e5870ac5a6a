// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each, forked from a process that never touches CUDA.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/emulated.hpp"

namespace gdrx::gpu {

inline constexpr int kRanks = 4;
inline constexpr std::uint64_t kCount = 2 << 20;  // uint32: where direct is the best by the model
inline constexpr std::uint64_t kBytes = kCount * 4;

struct Rank_ {
  int rank = 0;
  int device = 0;
  gdrxComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

/// What a rank does; 0 if all was well, or the line that saw that it was not.
using Life = std::function<int(Rank_& self)>;

#define CHECK_HERE(condition)                                                              \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      std::fprintf(stderr, "rank %d, line %d: %s (%s)\n", self.rank, __LINE__, #condition, \
                   gdrxGetLastError(self.comm));                                           \
      return 1;                                                                            \
    }                                                                                      \
  } while (false)

inline int live(int rank, const int* pipes, const Life& life) {
  Rank_ self;
  self.rank = rank;
  // A process has one rank here. With the 32 queues that ranks.hpp asks for, four processes have no
  // room on a GPU under MPS: the fourth context waits for a minute and fails.
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  int gpus = 0;
  CHECK_HERE(cudaGetDeviceCount(&gpus) == cudaSuccess && gpus > 0);
  self.device = rank % gpus;
  CHECK_HERE(cudaSetDevice(self.device) == cudaSuccess && cudaFree(nullptr) == cudaSuccess);
  CHECK_HERE(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking) == cudaSuccess);
  gdrxUniqueId id{};
  if (rank == 0) {
    CHECK_HERE(gdrxGetUniqueId(&id) == gdrxSuccess);
    for (int other = 1; other < kRanks; ++other) {
      CHECK_HERE(write(pipes[1], &id, sizeof id) == sizeof id);
    }
  } else {
    CHECK_HERE(read(pipes[0], &id, sizeof id) == sizeof id);
  }
  setenv("GDRX_REPRODUCIBLE", "1", 1);  // without the ring, registered memory is always worth it
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.timeout_seconds = 20;
  CHECK_HERE(gdrxCommInitRank(&self.comm, kRanks, id, rank, &config) == gdrxSuccess);
  const int result = life(self);
  if (result == 0 && self.comm != nullptr) {
    const gdrxResult_t ended = gdrxCommDestroy(self.comm);
    self.comm = nullptr;
    CHECK_HERE(ended == gdrxSuccess);
  }
  return result;
}

/// Every rank's exit status.
inline std::vector<int> run(const Life& life) {
  int pipes[2] = {-1, -1};
  EXPECT_EQ(pipe(pipes), 0);
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) _exit(live(rank, pipes, life));
    pids.push_back(pid);
  }
  std::vector<int> answers;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    answers.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  close(pipes[0]);
  close(pipes[1]);
  return answers;
}

/// An allReduce of `count` numbers from `in` into `out`, each compared; `registered` is what it has
/// to say of itself.
inline int check_call(Rank_& self, std::byte* in, std::byte* out, bool registered,
                      std::uint64_t count = kCount) {
  std::vector<std::uint32_t> data(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    data[i] = static_cast<std::uint32_t>(i * 2654435761U) + static_cast<std::uint32_t>(self.rank);
  }
  CHECK_HERE(cudaMemset(out, 0xa5, count * 4) == cudaSuccess);
  CHECK_HERE(cudaMemcpy(in, data.data(), count * 4, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK_HERE(cudaDeviceSynchronize() == cudaSuccess);
  CHECK_HERE(gdrxAllReduce(in, out, count, gdrxUint32, gdrxSum, self.comm,
                           reinterpret_cast<gdrxStream_t>(self.stream), nullptr) == gdrxSuccess);
  CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);
  gdrxOpInfo_t info{};
  info.size = sizeof info;
  CHECK_HERE(gdrxCommGetLastOp(self.comm, &info) == gdrxSuccess);
  CHECK_HERE(std::string(info.transport) == "gpu");
  CHECK_HERE((info.registered != 0) == registered);
  std::vector<std::uint32_t> got(count);
  CHECK_HERE(cudaMemcpy(got.data(), out, count * 4, cudaMemcpyDeviceToHost) == cudaSuccess);
  constexpr std::uint32_t kOfRanks = kRanks * (kRanks - 1) / 2;
  for (std::uint64_t i = 0; i < count; ++i) {
    CHECK_HERE(got[i] == static_cast<std::uint32_t>(i * 2654435761U) * kRanks + kOfRanks);
  }
  return 0;
}

class GpuProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (!kEmulated && access("/dev/nvidiactl", F_OK) != 0) GTEST_SKIP() << "no GPU on this machine";
  }
  const std::vector<int> well_ = std::vector<int>(kRanks, 0);
};

}  // namespace gdrx::gpu
