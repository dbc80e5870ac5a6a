// SPDX-License-Identifier: Apache-2.0
// GPU memory registered between processes: by CUDA IPC and by file descriptors. The ranks are
// forked from a process that never touches CUDA. Skipped without a GPU.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "collectives/gpu/load.hpp"
#include "collectives/gpu/window_ticket.hpp"
#include "gdrx/gdrx.h"
#include "tests/gpu/emulated.hpp"
#include "tests/gpu/ranks.hpp"
#include "tests/gpu/segments.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kRanks = 4;
constexpr std::uint64_t kCount = 2 << 20;  // uint32: where direct is the best by the model
constexpr std::uint64_t kBytes = kCount * 4;

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

int live(int rank, const int* pipes, const Life& life) {
  Rank_ self;
  self.rank = rank;
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
std::vector<int> run(const Life& life) {
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
int check_call(Rank_& self, std::byte* in, std::byte* out, bool registered,
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

int check_registered(Rank_& self, std::byte* in, std::byte* out) {
  gdrxRegistration_t handles[2] = {};
  CHECK_HERE(gdrxRegister(self.comm, in, kBytes, &handles[0]) == gdrxSuccess);
  CHECK_HERE(gdrxRegister(self.comm, out, kBytes, &handles[1]) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, out, true) == 0);
  CHECK_HERE(check_call(self, out, out, true) == 0);
  CHECK_HERE(gdrxDeregister(self.comm, handles[1]) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, out, false) == 0);
  CHECK_HERE(check_call(self, in, in, true) == 0);
  CHECK_HERE(gdrxDeregister(self.comm, handles[0]) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, in, false) == 0);
  return 0;
}

std::size_t open_files() {
  std::size_t count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += fcntl(fd, F_GETFD) != -1 ? 1 : 0;
  return count;
}

class GpuProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (!kEmulated && access("/dev/nvidiactl", F_OK) != 0) GTEST_SKIP() << "no GPU on this machine";
  }
  const std::vector<int> well_ = std::vector<int>(kRanks, 0);
};

// Both in one allocation, at each rank's own place: it is mapped once.
TEST_F(GpuProcesses, MemoryOfCudaMalloc) {
  EXPECT_EQ(run([](Rank_& self) {
              std::byte* memory = nullptr;
              void* raw = nullptr;
              CHECK_HERE(cudaMalloc(&raw, 3 * kBytes) == cudaSuccess);
              memory = static_cast<std::byte*>(raw) + 512 * (self.rank + 1);
              CHECK_HERE(check_registered(self, memory, memory + kBytes) == 0);
              CHECK_HERE(cudaFree(raw) == cudaSuccess);
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryFreedAfterItsEndComesBackAtTheSameAddress) {
  EXPECT_EQ(run([](Rank_& self) {
              void* before = nullptr;
              int same = 0;
              for (int round = 0; round < 5; ++round) {
                void* raw = nullptr;
                CHECK_HERE(cudaMalloc(&raw, 2 * kBytes) == cudaSuccess);
                same += raw == before ? 1 : 0;
                auto* in = static_cast<std::byte*>(raw);
                if (round % 2 == 0) {
                  CHECK_HERE(check_registered(self, in, in + kBytes) == 0);
                } else {
                  CHECK_HERE(check_call(self, in, in + kBytes, false) == 0);
                }
                CHECK_HERE(cudaFree(raw) == cudaSuccess);
                before = raw;
              }
              CHECK_HERE(same > 0);  // else nothing was tested
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryOfOneHandleAndOfSeveralAndNoDescriptorIsLeft) {
  EXPECT_EQ(run([](Rank_& self) {
              std::vector<std::vector<std::uint64_t>> layouts{{20}, {10, 1, 1, 8}};
              layouts.emplace_back(20, 1);  // a handle for each 2 MiB
              std::size_t before = 0;
              for (int round = 0; round < 2; ++round) {
                for (const auto& pages : layouts) {
                  const Segments segments(self.device, pages);
                  std::byte* in = segments.data() + 4096;
                  CHECK_HERE(check_registered(self, in, in + kBytes) == 0);
                }
                if (round == 0) before = open_files();
              }
              CHECK_HERE(open_files() == before);
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryThatWasNotMadeForOthersIsRefusedEverywhere) {
  EXPECT_EQ(
      run([](Rank_& self) {
        const Segments segments(self.device, {16}, self.rank != 2);
        gdrxRegistration_t handle = nullptr;
        CHECK_HERE(gdrxRegister(self.comm, segments.data(), kBytes, &handle) == gdrxUnsupported);
        const std::string why = gdrxGetLastError(self.comm);
        CHECK_HERE(why.find("rank 2: ") != std::string::npos);
        CHECK_HERE(why.find("POSIX_FILE_DESCRIPTOR") != std::string::npos);
        CHECK_HERE(handle == nullptr);
        CHECK_HERE(check_call(self, segments.data(), segments.data() + kBytes, false) == 0);
        return 0;
      }),
      well_);
}

TEST_F(GpuProcesses, WhatIsStillRegisteredEndsWithTheCommunicator) {
  EXPECT_EQ(
      run([](Rank_& self) {
        const Segments segments(self.device, {8, 8});
        void* raw = nullptr;
        CHECK_HERE(cudaMalloc(&raw, kBytes) == cudaSuccess);
        gdrxRegistration_t handle = nullptr;
        CHECK_HERE(gdrxRegister(self.comm, segments.data(), kBytes, &handle) == gdrxSuccess);
        CHECK_HERE(gdrxRegister(self.comm, raw, kBytes, &handle) == gdrxSuccess);
        CHECK_HERE(check_call(self, segments.data(), static_cast<std::byte*>(raw), true) == 0);
        const gdrxResult_t ended = gdrxCommDestroy(self.comm);
        self.comm = nullptr;
        CHECK_HERE(ended == gdrxSuccess);
        CHECK_HERE(cudaFree(raw) == cudaSuccess);
        return 0;
      }),
      well_);
}

int check_allocated(Rank_& self) {
  void* memory[2] = {};
  for (void*& one : memory) {
    CHECK_HERE(gdrxGpuMemAlloc(self.comm, &one, kBytes) == gdrxSuccess);
  }
  auto* in = static_cast<std::byte*>(memory[0]);
  auto* out = static_cast<std::byte*>(memory[1]);
  CHECK_HERE(check_call(self, in, out, true) == 0);
  CHECK_HERE(check_call(self, out, out, true) == 0);
  CHECK_HERE(gdrxMemFree(self.comm, out) == gdrxSuccess);
  CHECK_HERE(check_call(self, in, in, true) == 0);
  CHECK_HERE(gdrxMemFree(self.comm, in) == gdrxSuccess);
  return 0;
}

std::size_t free_memory() {
  std::size_t free = 0, total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
}

// The peers of another process that still map what a rank has freed would keep it, and a barrier
// makes sure that none of them is behind.
TEST_F(GpuProcesses, MemoryOfGdrxIsMappedByAllAndNothingOfItIsLeft) {
  EXPECT_EQ(run([](Rank_& self) {
              CHECK_HERE(check_allocated(self) == 0);
              CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
              const std::size_t files = open_files();
              const std::size_t memory = free_memory();
              CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
              CHECK_HERE(check_allocated(self) == 0);
              void* none = &self;
              const std::size_t bytes = self.rank == 2 ? std::size_t{1} << 40 : kBytes;
              CHECK_HERE(gdrxGpuMemAlloc(self.comm, &none, bytes) == gdrxSystemError);
              CHECK_HERE(none == nullptr);
              const std::string why = gdrxGetLastError(self.comm);
              CHECK_HERE(why.find("rank 2: cuMemCreate of") != std::string::npos);
              CHECK_HERE(check_allocated(self) == 0);
              CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
              CHECK_HERE(open_files() == files && free_memory() == memory);
              return 0;
            }),
            well_);
}

TEST_F(GpuProcesses, MemoryOfGdrxThatIsLeftEndsWithTheCommunicator) {
  EXPECT_EQ(run([](Rank_& self) {
              const std::size_t files = open_files();
              void* memory = nullptr;
              CHECK_HERE(gdrxGpuMemAlloc(self.comm, &memory, kBytes) == gdrxSuccess);
              auto* both = static_cast<std::byte*>(memory);
              CHECK_HERE(check_call(self, both, both, true) == 0);
              const gdrxResult_t ended = gdrxCommDestroy(self.comm);
              self.comm = nullptr;
              CHECK_HERE(ended == gdrxSuccess);
              cudaPointerAttributes found{};
              const cudaError_t asked = cudaPointerGetAttributes(&found, memory);
              CHECK_HERE(asked != cudaSuccess || found.type != cudaMemoryTypeDevice);
              CHECK_HERE(open_files() <= files);
              return 0;
            }),
            well_);
}

// Though only one rank wants a request, and of the first alone.
TEST_F(GpuProcesses, AGroupStartsItsGpuCallsInOrder) {
  constexpr std::uint64_t kFew = 1024;
  EXPECT_EQ(
      run([](Rank_& self) {
        std::uint32_t* at[3] = {};
        for (std::uint32_t*& one : at) {
          void* raw = nullptr;
          CHECK_HERE(cudaMalloc(&raw, kFew * 4) == cudaSuccess);
          one = static_cast<std::uint32_t*>(raw);
        }
        std::vector<std::uint32_t> data(kFew, 1);
        CHECK_HERE(cudaMemcpy(at[0], data.data(), kFew * 4, cudaMemcpyDefault) == cudaSuccess);
        auto* const stream = reinterpret_cast<gdrxStream_t>(self.stream);
        gdrxRequest_t request = nullptr;
        CHECK_HERE(gdrxGroupStart() == gdrxSuccess);
        for (int call = 0; call < 2; ++call) {
          CHECK_HERE(gdrxAllReduce(at[call], at[call + 1], kFew, gdrxUint32, gdrxSum, self.comm,
                                   stream, self.rank == 0 && call == 0 ? &request : nullptr) ==
                     gdrxSuccess);
        }
        CHECK_HERE(gdrxGroupEnd() == gdrxSuccess);
        CHECK_HERE(request == nullptr || gdrxWait(&request) == gdrxSuccess);
        CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);
        CHECK_HERE(cudaMemcpy(data.data(), at[2], kFew * 4, cudaMemcpyDefault) == cudaSuccess);
        CHECK_HERE(data == std::vector<std::uint32_t>(kFew, kRanks * kRanks));
        for (std::uint32_t* one : at) CHECK_HERE(cudaFree(one) == cudaSuccess);
        return 0;
      }),
      well_);
}

TEST_F(GpuProcesses, ARankThatDiesInsteadOfRegisteringIsNamed) {
  const auto answers = run([](Rank_& self) {
    void* raw = nullptr;
    CHECK_HERE(cudaMalloc(&raw, kBytes) == cudaSuccess);
    // All have made their communicator and know each other: UCX 1.13 may crash where a process goes
    // while another connects to it.
    std::uint64_t mine = 1, all[kRanks] = {};
    CHECK_HERE(gdrxAllGather(&mine, all, 1, gdrxUint64, self.comm, nullptr, nullptr) ==
               gdrxSuccess);
    CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
    if (self.rank == 1) _exit(77);
    gdrxRegistration_t handle = nullptr;
    CHECK_HERE(gdrxRegister(self.comm, raw, kBytes, &handle) == gdrxPeerLost);
    CHECK_HERE(std::string(gdrxGetLastError(self.comm)).find("rank 1") != std::string::npos);
    gdrxCommDestroy(self.comm);
    self.comm = nullptr;
    return 0;
  });
  EXPECT_EQ(answers, (std::vector<int>{0, 77, 0, 0}));
}

/// Of two ranks that have a path and no communicator.
int open_what_is_not_there(int rank, int other) {
  const auto swap = [&](std::span<const std::byte> mine) {
    Blob theirs(mine.size());
    const auto length = static_cast<ssize_t>(mine.size());
    if (write(other, mine.data(), mine.size()) != length) _exit(2);
    if (recv(other, theirs.data(), theirs.size(), MSG_WAITALL) != length) _exit(2);
    return theirs;
  };
  const std::size_t self = rank == 0 ? 0 : 1;
  int gpus = 0;
  must(cudaGetDeviceCount(&gpus), "count");
  must(cudaSetDevice(rank % gpus), "device");
  must(cudaFree(nullptr), "context");
  auto path = must(open_path({}));
  const Blob ticket = swap(std::as_bytes(std::span(&path->ticket(), 1)));
  Ticket tickets[2] = {path->ticket(), path->ticket()};
  std::memcpy(&tickets[1 - self], ticket.data(), sizeof(Ticket));
  must(path->connect(tickets, Rank{rank}));
  void* memory = nullptr;
  must(cudaMalloc(&memory, kBytes), "malloc");
  const auto offer = must(path->offer(memory, kBytes));
  auto said = must(decode_window_ticket(offer->ticket()));
  said.bytes = 16 * kBytes;
  Blob blobs[2] = {encode(said), encode(said)};
  blobs[1 - self] = swap(blobs[self]);
  const auto opened = path->open_window(blobs, Deadline::never());
  const std::string what = opened ? "" : describe(opened.error());
  swap(std::as_bytes(std::span("ended")));  // now the memory may go
  if (what.find("in an allocation of") != std::string::npos) return 0;
  std::fprintf(stderr, "rank %d: '%s'\n", rank, what.c_str());
  return 1;
}

TEST_F(GpuProcesses, WhatEndsBehindItsAllocationIsNotMapped) {
  int sockets[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  std::fflush(nullptr);
  const pid_t first = fork();
  if (first == 0) {
    close(sockets[1]);  // or it would not see the other's end
    _exit(open_what_is_not_there(0, sockets[0]));
  }
  const pid_t second = fork();
  if (second == 0) {
    close(sockets[0]);
    _exit(open_what_is_not_there(1, sockets[1]));
  }
  for (const int fd : sockets) close(fd);
  for (const pid_t pid : {first, second}) {
    int status = -1;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

TEST_F(GpuProcesses, AThreadWithoutAContextHasNoneAfterwards) {
  const pid_t pid = fork();
  if (pid == 0) {
    int gpus = 0;
    must(cudaGetDeviceCount(&gpus), "count");
    must(cudaSetDevice(gpus - 1), "device");
    must(cudaFree(nullptr), "context");
    auto path = must(open_path({}));
    const Ticket own = path->ticket();
    must(path->connect({&own, 1}, Rank{0}));
    const auto current = driver_function<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
    bool has_none = false;
    std::jthread([&] {
      must(path->is_captured(nullptr));
      must(path->synchronize(nullptr));
      CUcontext context = nullptr;
      has_none = current(&context) == CUDA_SUCCESS && context == nullptr;
    }).join();
    _exit(has_none ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gdrx::gpu
