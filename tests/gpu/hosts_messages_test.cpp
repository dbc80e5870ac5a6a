// SPDX-License-Identifier: Apache-2.0
// Sends and receives of GPU memory between hosts, in streams, by the C API. Ranks of one process, a
// thread each. Skipped without a GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::uint32_t>;
constexpr std::uint64_t kBlock = 300'000;  // elements for each peer

/// Each rank on a host of its own, on the first GPU.
class HostMessages {
 public:
  struct Member {
    int rank = 0;
    gdrxComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    std::uint32_t* in = nullptr;  // a block for each rank, as the next
    std::uint32_t* out = nullptr;
    gdrxStream_t to() const { return reinterpret_cast<gdrxStream_t>(stream); }
  };

  explicit HostMessages(int ranks, double timeout = 20)
      : members_(static_cast<std::size_t>(ranks)) {
    gdrxUniqueId id{};
    EXPECT_EQ(gdrxGetUniqueId(&id), gdrxSuccess);
    must(cudaSetDevice(0), "cudaSetDevice");
    const int gpu = 0;
    setenv("GDRX_TRANSPORT", "tcp", 1);
    setenv("GDRX_GPU_STAGING", "16777216", 1);  // the ranks copy to memory that is not pinned
    for (int rank = 0; rank < ranks; ++rank) {
      Member& self = at(rank);
      self.rank = rank;
      gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
      config.timeout_seconds = timeout;
      config.gpus = &gpu;
      setenv("GDRX_HOST_ID", ("host" + std::to_string(rank)).c_str(), 1);
      EXPECT_EQ(gdrxCommInitRankAsync(&self.comm, ranks, id, rank, &config), gdrxSuccess);
      must(cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking), "stream");
      self.in = allocate<std::uint32_t>(kBlock * static_cast<std::uint64_t>(ranks));
      self.out = allocate<std::uint32_t>(kBlock * static_cast<std::uint64_t>(ranks));
    }
    unsetenv("GDRX_HOST_ID");
    unsetenv("GDRX_TRANSPORT");
    unsetenv("GDRX_GPU_STAGING");
    each([](Member& self) {
      gdrxResult_t state = gdrxInProgress;
      while (state == gdrxInProgress) {
        gdrxCommGetAsyncError(self.comm, &state);
        std::this_thread::yield();
      }
      ASSERT_EQ(state, gdrxSuccess) << gdrxGetLastError(self.comm);
    });
  }
  ~HostMessages() {
    each([](Member& self) {
      gdrxCommDestroy(self.comm);
      cudaFree(self.in);
      cudaFree(self.out);
      cudaStreamDestroy(self.stream);
    });
  }
  HostMessages(const HostMessages&) = delete;
  HostMessages& operator=(const HostMessages&) = delete;

  int size() const { return static_cast<int>(members_.size()); }
  Member& at(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  void each(const std::function<void(Member&)>& body) {
    std::vector<std::jthread> threads;
    for (Member& self : members_) {
      threads.emplace_back([&body, &self] {
        must(cudaSetDevice(0), "cudaSetDevice");
        body(self);
      });
    }
  }

 private:
  std::vector<Member> members_;
};
using Member = HostMessages::Member;

std::uint64_t count_of(int from, int to) {
  return (from + to) % 3 == 1 ? kBlock - static_cast<std::uint64_t>(from) : 5;
}

Words words_of(int from, int to, std::uint32_t round) {
  Words words(count_of(from, to));
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::uint32_t>(from * 1000 + to * 100) + round * 7919 +
               static_cast<std::uint32_t>(i) * 3;
  }
  return words;
}

std::uint64_t begin_of(int peer) { return kBlock * static_cast<std::uint64_t>(peer); }

/// Each rank has some for each, itself too.
void exchange(const HostMessages& world, Member& self) {
  EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
  for (int peer = 0; peer < world.size(); ++peer) {
    gdrxSend(self.in + begin_of(peer), count_of(self.rank, peer), gdrxUint32, peer, self.comm,
             self.to(), nullptr);
    gdrxRecv(self.out + begin_of(peer), count_of(peer, self.rank), gdrxUint32, peer, self.comm,
             self.to(), nullptr);
  }
  EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
}

void fill(const HostMessages& world, Member& self, std::uint32_t round) {
  for (int peer = 0; peer < world.size(); ++peer) {
    const Words words = words_of(self.rank, peer, round);
    must(cudaMemcpyAsync(self.in + begin_of(peer), words.data(), words.size() * 4,
                         cudaMemcpyHostToDevice, self.stream),
         "copy");
    must(cudaStreamSynchronize(self.stream), "synchronize");
  }
}

void check(const HostMessages& world, Member& self, std::uint32_t round) {
  for (int peer = 0; peer < world.size(); ++peer) {
    Words got(count_of(peer, self.rank));
    must(cudaMemcpyAsync(got.data(), self.out + begin_of(peer), got.size() * 4,
                         cudaMemcpyDeviceToHost, self.stream),
         "copy");
    must(cudaStreamSynchronize(self.stream), "synchronize");
    EXPECT_TRUE(got == words_of(peer, self.rank, round))
        << "from " << peer << " to " << self.rank << ", round " << round;
  }
}

class GpuHostMessages : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
};

TEST_F(GpuHostMessages, AGroupReturnsAtOnceAndTheStreamWaitsForAll) {
  constexpr auto kBusy = std::chrono::milliseconds(800);
  HostMessages world(3);
  for (std::uint32_t round = 0; round < 3; ++round) {
    world.each([&](Member& self) { fill(world, self, round); });
    world.each([&](Member& self) {
      enqueue_delay(std::chrono::nanoseconds(kBusy).count(), self.stream);
      const auto begin = Clock::now();
      exchange(world, self);
      EXPECT_LT(Clock::now() - begin, kBusy * 3 / 4);
      check(world, self, round);
    });
  }
}

TEST_F(GpuHostMessages, AGraphRepeatsAGroup) {
  HostMessages world(3);
  std::vector<cudaGraphExec_t> graphs(3);
  world.each([&](Member& self) {
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    exchange(world, self);
    must(cudaStreamEndCapture(self.stream, &graph), "capture");
    must(cudaGraphInstantiate(&graphs[static_cast<std::size_t>(self.rank)], graph, 0), "graph");
    cudaGraphDestroy(graph);
  });
  for (std::uint32_t round = 0; round < 20; ++round) {
    world.each([&](Member& self) {
      fill(world, self, round);
      must(cudaGraphLaunch(graphs[static_cast<std::size_t>(self.rank)], self.stream), "launch");
      check(world, self, round);
    });
  }
  for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
}

TEST_F(GpuHostMessages, AGroupMayBeOfMessagesToOneselfAlone) {
  HostMessages world(2);
  world.each([&](Member& self) {
    const auto copy_own = [&] {
      EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
      gdrxSend(self.in, 1000, gdrxUint32, self.rank, self.comm, self.to(), nullptr);
      gdrxRecv(self.out, 1000, gdrxUint32, self.rank, self.comm, self.to(), nullptr);
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
    };
    const auto expect = [&](std::uint32_t round) {
      Words got(1000);
      must(cudaMemcpyAsync(got.data(), self.out, 4000, cudaMemcpyDeviceToHost, self.stream),
           "copy");
      must(cudaStreamSynchronize(self.stream), "synchronize");
      Words words = words_of(self.rank, 0, round);
      words.resize(5);
      got.resize(5);
      EXPECT_EQ(got, words);
    };
    fill(world, self, 1);
    copy_own();
    expect(1);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    must(cudaStreamBeginCapture(self.stream, cudaStreamCaptureModeThreadLocal), "capture");
    copy_own();
    must(cudaStreamEndCapture(self.stream, &graph), "capture");
    must(cudaGraphInstantiate(&made, graph, 0), "graph");
    fill(world, self, 2);
    must(cudaGraphLaunch(made, self.stream), "launch");
    expect(2);
    cudaGraphExecDestroy(made);
    cudaGraphDestroy(graph);
  });
}

// One has both in a group, the other one after the other.
TEST_F(GpuHostMessages, AGroupMeetsCallsOfNone) {
  HostMessages world(2);
  world.each([&](Member& self) { fill(world, self, 1); });
  world.each([&](Member& self) {
    const int peer = 1 - self.rank;
    if (self.rank == 0) gdrxGroupStart();
    const auto send = [&] {
      EXPECT_EQ(gdrxSend(self.in + begin_of(peer), count_of(self.rank, peer), gdrxUint32, peer,
                         self.comm, self.to(), nullptr),
                gdrxSuccess);
    };
    if (self.rank == 0) send();
    EXPECT_EQ(gdrxRecv(self.out + begin_of(peer), count_of(peer, self.rank), gdrxUint32, peer,
                       self.comm, self.to(), nullptr),
              gdrxSuccess);
    if (self.rank == 1) send();
    if (self.rank == 0) {
      EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess);
    }
    must(cudaStreamSynchronize(self.stream), "synchronize");
    Words got(count_of(peer, self.rank));
    must(cudaMemcpy(got.data(), self.out + begin_of(peer), got.size() * 4, cudaMemcpyDeviceToHost),
         "copy");
    EXPECT_TRUE(got == words_of(peer, self.rank, 1));
  });
}

// Messages of one pair of ranks are matched in the order of their calls, whatever their memory.
TEST_F(GpuHostMessages, HostMemoryInTheGroupKeepsItsPlace) {
  HostMessages world(2);
  world.each([&](Member& self) { fill(world, self, 0); });
  world.each([&](Member& self) {
    const Words host(5, 77);
    EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
    if (self.rank == 0) {
      gdrxSend(self.in, 5, gdrxUint32, 1, self.comm, self.to(), nullptr);
      gdrxSend(host.data(), 5, gdrxUint32, 1, self.comm, nullptr, nullptr);
    } else {
      gdrxRecv(self.out, 5, gdrxUint32, 0, self.comm, self.to(), nullptr);
      gdrxRecv(self.out + 5, 5, gdrxUint32, 0, self.comm, self.to(), nullptr);
    }
    EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
    must(cudaStreamSynchronize(self.stream), "synchronize");
    if (self.rank == 0) return;
    Words got(10);
    must(cudaMemcpy(got.data(), self.out, 40, cudaMemcpyDeviceToHost), "copy");
    Words expected = words_of(0, 0, 0);
    expected.resize(5);
    expected.insert(expected.end(), host.begin(), host.end());
    EXPECT_EQ(got, expected);
  });
}

// One stages the first in its stream, the other does not: both begin with it.
TEST_F(GpuHostMessages, CollectivesOfAGroupKeepTheirOrderWhateverStreamsRanksGive) {
  HostMessages world(2);
  world.each([&](Member& self) { fill(world, self, 4); });
  world.each([&](Member& self) {
    EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
    gdrxAllGather(self.in, self.out, 5, gdrxUint32, self.comm,
                  self.rank == 0 ? self.to() : gdrxStreamNone, nullptr);
    gdrxAllReduce(self.in, self.out + 10, 5, gdrxUint32, gdrxSum, self.comm, self.to(), nullptr);
    EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
    must(cudaStreamSynchronize(self.stream), "synchronize");
    Words got(15);
    must(cudaMemcpy(got.data(), self.out, 60, cudaMemcpyDeviceToHost), "copy");
    const Words first = words_of(0, 0, 4);
    const Words second = words_of(1, 0, 4);
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(got[i], first[i]);
      EXPECT_EQ(got[5 + i], second[i]);
      EXPECT_EQ(got[10 + i], first[i] + second[i]);
    }
  });
}

TEST_F(GpuHostMessages, StreamsOfWhichOneIsCapturedAreRefusedAndNobodyFails) {
  HostMessages world(2);
  world.each([&](Member& self) { fill(world, self, 5); });
  world.each([&](Member& self) {
    const int peer = 1 - self.rank;
    if (self.rank == 0) {
      cudaStream_t other = nullptr;
      cudaGraph_t graph = nullptr;
      must(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
      must(cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal), "capture");
      EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
      gdrxSend(self.in, 5, gdrxUint32, peer, self.comm, self.to(), nullptr);
      gdrxRecv(self.out, 5, gdrxUint32, peer, self.comm, reinterpret_cast<gdrxStream_t>(other),
               nullptr);
      EXPECT_EQ(gdrxGroupEnd(), gdrxUnsupported);
      must(cudaStreamEndCapture(other, &graph), "capture");
      cudaGraphDestroy(graph);
      cudaStreamDestroy(other);
    }
    exchange(world, self);
    check(world, self, 5);
  });
}

TEST_F(GpuHostMessages, RequestsOfAGroupEndWithTheirMessages) {
  HostMessages world(2);
  world.each([&](Member& self) { fill(world, self, 3); });
  world.each([&](Member& self) {
    const int peer = 1 - self.rank;
    gdrxRequest_t sent = nullptr, received = nullptr;
    EXPECT_EQ(gdrxGroupStart(), gdrxSuccess);
    gdrxSend(self.in + begin_of(peer), count_of(self.rank, peer), gdrxUint32, peer, self.comm,
             self.to(), &sent);
    gdrxRecv(self.out + begin_of(peer), count_of(peer, self.rank), gdrxUint32, peer, self.comm,
             self.to(), &received);
    EXPECT_EQ(gdrxGroupEnd(), gdrxSuccess) << gdrxGetLastError(self.comm);
    EXPECT_EQ(gdrxWait(&received), gdrxSuccess);
    EXPECT_EQ(gdrxWait(&sent), gdrxSuccess);
    Words got(count_of(peer, self.rank));
    must(cudaMemcpy(got.data(), self.out + begin_of(peer), got.size() * 4, cudaMemcpyDeviceToHost),
         "copy");
    EXPECT_TRUE(got == words_of(peer, self.rank, 3));
  });
}

TEST_F(GpuHostMessages, AReceiveThatNobodySendsEndsByItsDeadline) {
  HostMessages world(2, 1.0);
  world.each([](Member& self) {
    if (self.rank != 0) return;
    const auto begin = Clock::now();
    EXPECT_EQ(gdrxRecv(self.out, 100, gdrxUint32, 1, self.comm, self.to(), nullptr), gdrxSuccess);
    must(cudaStreamSynchronize(self.stream), "synchronize");
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(6));
    gdrxResult_t why = gdrxSuccess;
    gdrxCommGetAsyncError(self.comm, &why);
    EXPECT_EQ(why, gdrxTimeout);
    const std::string text = gdrxGetLastError(self.comm);
    EXPECT_NE(text.find("rank 1"), std::string::npos) << text;
  });
}

// Those that wait for their stream, and those that it has begun.
TEST_F(GpuHostMessages, AGroupWhoseStreamHasNotComeToItIsAmongWhatWaits) {
  HostMessages world(2);
  world.each([&](Member& self) {
    enqueue_delay(1'000'000'000, self.stream);
    exchange(world, self);
    gdrxWaiting_t waiting{};
    waiting.size = sizeof waiting;
    EXPECT_EQ(gdrxCommGetWaiting(self.comm, &waiting), gdrxSuccess) << gdrxGetLastError(self.comm);
    EXPECT_EQ(waiting.behind, 1);
    must(cudaStreamSynchronize(self.stream), "synchronize");
  });
}

TEST_F(GpuHostMessages, AnAbortEndsRequestsAndReleasesTheStream) {
  HostMessages world(2);
  world.each([](Member& self) {
    if (self.rank != 0) return;
    gdrxRequest_t first = nullptr, second = nullptr;
    EXPECT_EQ(gdrxRecv(self.out, 100, gdrxUint32, 1, self.comm, self.to(), &first), gdrxSuccess);
    EXPECT_EQ(gdrxRecv(self.out, 100, gdrxUint32, 1, self.comm, self.to(), &second), gdrxSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gdrxCommAbort(self.comm);
    must(cudaStreamSynchronize(self.stream), "synchronize");
    EXPECT_EQ(gdrxWait(&second), gdrxAborted);
    EXPECT_EQ(gdrxWait(&first), gdrxAborted);
  });
}

}  // namespace
}  // namespace gdrx::gpu
