// SPDX-License-Identifier: Apache-2.0
// What a process that ends, lies or has no context does to others and to itself. Skipped without a
// GPU.
#include <sys/socket.h>

#include <cstring>
#include <span>
#include <thread>

#include "collectives/gpu/load.hpp"
#include "collectives/gpu/window_ticket.hpp"
#include "tests/gpu/processes.hpp"
#include "tests/gpu/ranks.hpp"
#include "tests/gpu/segments.hpp"

namespace gdrx::gpu {
namespace {

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

// Both who sends to it, and has no room for all, and who receives.
TEST_F(GpuProcesses, ARankThatDiesInsteadOfReceivingIsNamed) {
  const auto answers = run([](Rank_& self) {
    void* raw = nullptr;
    CHECK_HERE(cudaMalloc(&raw, 8 * kBytes) == cudaSuccess);
    std::uint64_t mine = 1, all[kRanks] = {};
    CHECK_HERE(gdrxAllGather(&mine, all, 1, gdrxUint64, self.comm, nullptr, nullptr) ==
               gdrxSuccess);
    CHECK_HERE(gdrxBarrier(self.comm, nullptr, nullptr) == gdrxSuccess);
    auto* const stream = reinterpret_cast<gdrxStream_t>(self.stream);
    if (self.rank == 1) _exit(77);
    if (self.rank == 0) gdrxSend(raw, 8 * kBytes, gdrxByte, 1, self.comm, stream, nullptr);
    if (self.rank == 2) gdrxRecv(raw, 8, gdrxByte, 1, self.comm, stream, nullptr);
    gdrxResult_t error = gdrxSuccess;
    while (error == gdrxSuccess) {
      CHECK_HERE(gdrxCommGetAsyncError(self.comm, &error) == gdrxSuccess);
    }
    CHECK_HERE(error == gdrxPeerLost);
    CHECK_HERE(std::string(gdrxGetLastError(self.comm)).find("rank 1") != std::string::npos);
    CHECK_HERE(cudaStreamSynchronize(self.stream) == cudaSuccess);
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
