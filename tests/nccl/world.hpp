// SPDX-License-Identifier: Apache-2.0
// Ranks of one process, a thread each, by NCCL's API.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "tests/gpu/ranks.hpp"
#include "tests/nccl/api.hpp"

namespace gdrx::nccl {

using gpu::gpu_count;
using gpu::must;
using Bytes_ = std::vector<std::byte>;
inline constexpr std::size_t kRoom = 1 << 20;

struct Member {
  int rank = 0;
  int ranks = 0;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::byte* in = nullptr;
  std::byte* out = nullptr;

  void upload(std::byte* to, const void* from, std::size_t bytes) const {
    if (bytes == 0) return;
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copy");
    must(cudaStreamSynchronize(stream), "copy");
  }
  void download(void* to, const std::byte* from, std::size_t bytes) const {
    if (bytes == 0) return;
    // A copy to pageable memory waits where no other rank of the process can start a kernel.
    must(cudaStreamSynchronize(stream), "calls");
    must(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "copy");
    must(cudaStreamSynchronize(stream), "copy");
  }
  template <class T>
  std::vector<T> got(std::size_t count, const std::byte* from = nullptr) const {
    std::vector<T> all(count);
    download(all.data(), from != nullptr ? from : out, count * sizeof(T));
    return all;
  }
  void open() {
    must(cudaSetDevice(rank % gpu_count()), "cudaSetDevice");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    in = gpu::allocate<std::byte>(kRoom);
    out = gpu::allocate<std::byte>(kRoom);
  }
  void close() {
    cudaFree(in);
    cudaFree(out);
    cudaStreamDestroy(stream);
  }
};

class World {
 public:
  explicit World(int ranks) : members_(static_cast<std::size_t>(ranks)) {
    UniqueId id{};
    EXPECT_EQ(ncclGetUniqueId(&id), kSuccess);
    for (int r = 0; r < ranks; ++r) members_[static_cast<std::size_t>(r)].rank = r;
    each([&](Member& self) {
      self.ranks = ranks;
      self.open();
      ASSERT_EQ(ncclCommInitRank(&self.comm, ranks, id, self.rank), kSuccess)
          << ncclGetLastError(nullptr);
    });
  }
  ~World() {
    each([](Member& self) {
      ncclCommDestroy(self.comm);
      self.close();
    });
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void each(const std::function<void(Member&)>& body) {
    std::vector<std::thread> threads;
    for (Member& self : members_) {
      threads.emplace_back([&body, &self] {
        must(cudaSetDevice(self.rank % gpu_count()), "cudaSetDevice");
        body(self);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Member& operator[](std::size_t rank) { return members_[rank]; }

 private:
  std::vector<Member> members_;
};

/// This rank's sum of ones, by allReduce: whether a communicator works, and of how many it is.
inline std::uint32_t count_by_sum(const Member& self, ncclComm_t comm) {
  const std::uint32_t one = 1;
  self.upload(self.in, &one, sizeof one);
  EXPECT_EQ(ncclAllReduce(self.in, self.out, 1, kUint32, kSum, comm, self.stream), kSuccess)
      << ncclGetLastError(comm);
  EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
  return self.got<std::uint32_t>(1)[0];
}

class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};
class NcclRanks : public Nccl, public testing::WithParamInterface<int> {};

}  // namespace gdrx::nccl
