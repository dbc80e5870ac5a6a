// SPDX-License-Identifier: Apache-2.0
// Communicators: out of others, their ends, and what is refused.
#include <array>
#include <barrier>
#include <chrono>
#include <string>
#include <utility>

#include "tests/nccl/world.hpp"

namespace gdrx::nccl {
namespace {

class NcclComms : public Nccl {};

/// What is freed waits for all that the process has on a GPU: ranks that share one end together.
TEST_F(NcclComms, AreSplitByColorAndKey) {
  World world(4);
  std::barrier done(3);
  world.each([&](const Member& self) {
    ncclComm_t part = nullptr;
    ASSERT_EQ(
        ncclCommSplit(self.comm, self.rank == 3 ? -1 : self.rank % 2, -self.rank, &part, nullptr),
        kSuccess);
    if (self.rank == 3) {
      EXPECT_EQ(part, nullptr);
      return;
    }
    int rank = -1;
    EXPECT_EQ(ncclCommUserRank(part, &rank), kSuccess);
    EXPECT_EQ(rank, self.rank == 0 ? 1 : 0);
    EXPECT_EQ(count_by_sum(self, part), self.rank == 1 ? 1U : 2U);
    done.arrive_and_wait();
    EXPECT_EQ(ncclCommDestroy(part), kSuccess);
  });
}

TEST_F(NcclComms, ShrinkToThoseThatStay) {
  World world(3);
  world.each([](const Member& self) {
    if (self.rank == 1) return;
    std::array<int, 1> gone{1};
    ncclComm_t rest = nullptr;
    ASSERT_EQ(ncclCommShrink(self.comm, gone.data(), 1, &rest, nullptr, 0), kSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(count_by_sum(self, rest), 2U);
    EXPECT_EQ(ncclCommDestroy(rest), kSuccess);
  });
}

/// All that is revoked is left for a smaller one.
TEST_F(NcclComms, AreRevokedAndShrunk) {
  World world(3);
  std::barrier both(2);
  world.each([&](Member& self) {
    if (self.rank == 1) return;
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 5, kUint32, kSum, self.comm, self.stream),
              kSuccess);  // that rank 1 never calls
    both.arrive_and_wait();
    EXPECT_EQ(ncclCommRevoke(self.comm, 0), kSuccess);
    Result state = kInProgress;
    EXPECT_EQ(ncclCommGetAsyncError(self.comm, &state), kSuccess);
    EXPECT_EQ(state, kSuccess);
    std::array<int, 1> gone{1};
    ncclComm_t rest = nullptr;
    ASSERT_EQ(ncclCommShrink(self.comm, gone.data(), 1, &rest, nullptr, kShrinkAbort), kSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
    EXPECT_EQ(count_by_sum(self, rest), 2U);
    EXPECT_EQ(ncclCommDestroy(rest), kSuccess);
    EXPECT_EQ(ncclCommDestroy(std::exchange(self.comm, nullptr)), kSuccess) << "as it was revoked";
  });
}

TEST_F(NcclComms, AreShrunkWhileACallWaitsForWhoIsLeftOut) {
  World world(3);
  std::barrier both(2);
  world.each([&](Member& self) {
    if (self.rank == 1) return;
    EXPECT_EQ(ncclAllReduce(self.in, self.out, 5, kUint32, kSum, self.comm, self.stream), kSuccess);
    both.arrive_and_wait();
    std::array<int, 1> gone{1};
    ncclComm_t rest = nullptr;
    ASSERT_EQ(ncclCommShrink(self.comm, gone.data(), 1, &rest, nullptr, kShrinkAbort), kSuccess)
        << ncclGetLastError(nullptr);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
    EXPECT_EQ(ncclCommDestroy(rest), kSuccess);
    EXPECT_EQ(ncclCommDestroy(std::exchange(self.comm, nullptr)), kSuccess) << "as it was asked";
  });
}

TEST_F(NcclComms, GrowByNewRanks) {
  World world(3);
  UniqueId id{};
  std::array<ncclComm_t, 2> pair{};
  UniqueId of_pair{};
  ASSERT_EQ(ncclGetUniqueId(&of_pair), kSuccess);
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  world.each([&](const Member& self) {
    ncclComm_t small = nullptr, grown = nullptr;
    if (self.rank < 2) {
      ncclComm_t& mine = pair[static_cast<std::size_t>(self.rank)];
      ASSERT_EQ(ncclCommInitRank(&mine, 2, of_pair, self.rank), kSuccess);
      small = mine;
    }
    const bool knows = self.rank != 1;  // the root, and whoever is new
    ASSERT_EQ(
        ncclCommGrow(small, 3, knows ? &id : nullptr, small != nullptr ? -1 : 2, &grown, nullptr),
        kSuccess)
        << ncclGetLastError(nullptr);
    EXPECT_EQ(count_by_sum(self, grown), 3U);
    if (small != nullptr) {
      ncclComm_t none = nullptr;
      EXPECT_EQ(ncclCommGrow(small, 3, nullptr, -1, &none, nullptr), kInvalidArgument);
    }
    EXPECT_EQ(ncclCommDestroy(grown), kSuccess);
    EXPECT_EQ(ncclCommDestroy(small), kSuccess);
  });
}

TEST_F(NcclComms, AreAbortedByAnotherThreadWhileACallWaits) {
  std::array<ncclComm_t, 2> comms{};
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  const auto rank_of = [&](int rank) {
    Member self;
    self.rank = rank;
    self.open();
    ncclComm_t& comm = comms[static_cast<std::size_t>(rank)];
    ASSERT_EQ(ncclCommInitRank(&comm, 2, id, rank), kSuccess);
    if (rank == 0) {  // staged: it waits in the stream
      Operator op = 0;
      float scalar = 1;
      ASSERT_EQ(ncclRedOpCreatePreMulSum(&op, &scalar, kFloat32, kScalarHost, comm), kSuccess);
      std::thread aborter([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        EXPECT_EQ(ncclCommAbort(comms[0]), kSuccess);
      });
      EXPECT_EQ(ncclAllReduce(self.in, self.out, 9, kFloat32, op, comm, self.stream), kSuccess);
      EXPECT_EQ(cudaStreamSynchronize(self.stream), cudaSuccess);
      aborter.join();
    } else {
      Result state = kSuccess;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (state == kSuccess && std::chrono::steady_clock::now() < end) {
        ASSERT_EQ(ncclCommGetAsyncError(comm, &state), kSuccess);
      }
      EXPECT_EQ(state, kRemoteError);
      EXPECT_NE(std::string(ncclGetLastError(comm)).find("abort"), std::string::npos)
          << ncclGetLastError(comm);
      EXPECT_EQ(ncclCommAbort(comm), kSuccess);
    }
    self.close();
  };
  std::thread other(rank_of, 1);
  rank_of(0);
  other.join();
}

TEST_F(NcclComms, SayWhatIsWrong) {
  World world(2);
  world.each([](const Member& self) {
    const auto all_reduce = [&](Type type, Operator op, ncclComm_t comm) {
      return ncclAllReduce(self.in, self.out, 1, type, op, comm, self.stream);
    };
    EXPECT_EQ(all_reduce(kUint32, kSum, nullptr), kInvalidArgument);
    EXPECT_STREQ(ncclGetLastError(nullptr), "ncclAllReduce: comm is NULL");
    std::array<std::uint64_t, 32> no_comm{};
    no_comm.fill(8);
    EXPECT_EQ(all_reduce(kUint32, kSum, reinterpret_cast<ncclComm_t>(no_comm.data())),
              kInvalidArgument);
    for (const Operator none : {-1, 5, 8, 12}) {
      EXPECT_EQ(all_reduce(kUint32, none, self.comm), kInvalidArgument) << none;
    }
    for (const Type none : {-1, 12, 26}) {
      EXPECT_EQ(all_reduce(none, kSum, self.comm), kInvalidArgument) << none;
    }
    EXPECT_EQ(ncclAllReduce(nullptr, self.out, 1, kUint32, kSum, self.comm, self.stream),
              kInvalidArgument);
    EXPECT_EQ(ncclBroadcast(self.in, self.out, 1, kUint32, 2, self.comm, self.stream),
              kInvalidArgument);
    EXPECT_EQ(ncclCommCount(self.comm, nullptr), kInvalidArgument);
    EXPECT_EQ(ncclCommGetAsyncError(self.comm, nullptr), kInvalidArgument);
    EXPECT_EQ(ncclCommRevoke(self.comm, 1), kInvalidArgument);
    EXPECT_EQ(ncclPutSignal(), kInvalidUsage);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("ncclSend"), std::string::npos);
    EXPECT_EQ(count_by_sum(self, self.comm), 2U);
  });
  ncclComm_t comm = nullptr;
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  EXPECT_EQ(ncclCommInitRank(nullptr, 1, id, 0), kInvalidArgument);
  EXPECT_EQ(ncclCommInitRank(&comm, 1, id, 1), kInvalidArgument);
  EXPECT_EQ(ncclGetUniqueId(nullptr), kInvalidArgument);
  EXPECT_EQ(ncclGetVersion(nullptr), kInvalidArgument);
  Config config{};
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), kInvalidArgument);
  config.size = sizeof config;  // but not the magic number
  config.blocking = 1;
  config.min_ctas = config.max_ctas = 1;
  EXPECT_EQ(ncclCommInitRankConfig(&comm, 1, id, 0, &config), kInvalidArgument);
  EXPECT_EQ(comm, nullptr);
}

/// 2.14's had one member of a program's, and no more memory behind it.
TEST_F(NcclComms, TakeTheConfigOfAnyVersion) {
  struct Old {
    std::size_t size = sizeof(Old);
    unsigned magic = kConfigMagic;
    unsigned version = 21400;
    int blocking = 1;
  } old;
  UniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
  ncclComm_t comm = nullptr;
  EXPECT_EQ(ncclCommInitRankScalable(&comm, 1, 0, 1, &id, reinterpret_cast<Config*>(&old)),
            kSuccess)
      << ncclGetLastError(nullptr);
  EXPECT_EQ(ncclCommDestroy(comm), kSuccess);
}

/// Before CUDA 12 cudaSetDevice makes no context.
TEST_F(NcclComms, AreOfTheDeviceThatWasSetWithoutAContextOfIt) {
  if (!gpu::kEmulated) GTEST_SKIP() << "CUDA's runtime of this test makes a context";
  if (gpu_count() < 2) GTEST_SKIP() << "one GPU alone";
  setenv("GDRX_EMULATED_LATE_CONTEXTS", "1", 1);
  std::thread([] {
    must(cudaSetDevice(1), "cudaSetDevice");
    void* memory = nullptr;
    ASSERT_EQ(ncclMemAlloc(&memory, 64), kSuccess);
    cudaPointerAttributes of{};
    must(cudaPointerGetAttributes(&of, memory), "attributes");
    EXPECT_EQ(of.device, 1);
    EXPECT_EQ(ncclMemFree(memory), kSuccess);
  }).join();
  std::thread([] {
    must(cudaSetDevice(1), "cudaSetDevice");
    UniqueId id{};
    ASSERT_EQ(ncclGetUniqueId(&id), kSuccess);
    ncclComm_t comm = nullptr;
    ASSERT_EQ(ncclCommInitRank(&comm, 1, id, 0), kSuccess) << ncclGetLastError(nullptr);
    int device = -1;
    EXPECT_EQ(ncclCommCuDevice(comm, &device), kSuccess);
    EXPECT_EQ(device, 1);
    EXPECT_EQ(ncclCommDestroy(comm), kSuccess);
  }).join();
  unsetenv("GDRX_EMULATED_LATE_CONTEXTS");
}

TEST_F(NcclComms, TheVersionIsOneThatProgramsKnow) {
  int version = 0;
  EXPECT_EQ(ncclGetVersion(&version), kSuccess);
  EXPECT_EQ(version, 22809);
}

}  // namespace
}  // namespace gdrx::nccl
