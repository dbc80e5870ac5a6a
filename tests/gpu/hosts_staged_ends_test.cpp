// SPDX-License-Identifier: Apache-2.0
// How staged calls between hosts end: late ranks, aborts, calls that differ, communicators that go.
// Skipped without a GPU.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/comm/shortage.hpp"
#include "tests/gpu/staged_world.hpp"

namespace gdrx::gpu {
namespace {

using Clock = std::chrono::steady_clock;

class GpuHostStagedEnds : public GpuHosts {};

TEST_P(GpuHostStagedEnds, AGraphThatOutlivesItsCommunicatorDoesNothing) {
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<Words> kept;
  const StagedCase what{Collective::all_gather, 100'001};
  auto graphs = capture_all(world, what);
  launch_graphs(world, graphs);
  world.for_each([&](int rank) { world.end(rank); });  // waits for them
  prepare(world, what, kept);
  launch_graphs(world, graphs);
  world.for_each([&](int rank) {
    Words got(what.count * 2);
    must(cudaMemcpyAsync(got.data(), output_at(world, rank), got.size() * 4, cudaMemcpyDeviceToHost,
                         world.stream(rank)),
         "copy");
    synchronize(world, rank);
    EXPECT_TRUE(got == Words(got.size(), kUntouched)) << "rank " << rank;
  });
  end(graphs);
}

TEST_P(GpuHostStagedEnds, ARankThatDoesNotCallIsNamedAndTheStreamEnds) {
  for (const bool captured : {false, true}) {
    Hosts::Settings settings = settings_of(GetParam());
    settings.timeout = std::chrono::milliseconds(1500);
    Hosts world(2, 1, settings);
    world.for_each([&](int rank) {
      if (rank > 0) return;
      const gdrx::Call call = call_of(world, {Collective::all_gather, 1000}, 0);
      const auto launch = [&] { must(call_api(world.comm(0), call)); };
      const auto begin = Clock::now();
      if (captured) {
        const cudaGraphExec_t graph = capture(world, 0, launch);
        must(cudaGraphLaunch(graph, world.stream(0)), "launch");
        synchronize(world, 0);
        cudaGraphExecDestroy(graph);
      } else {
        launch();
        synchronize(world, 0);
      }
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
      const auto failure = world.comm(0).async_error();
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, Errc::timeout);
      EXPECT_NE(failure->what.find("rank 1"), std::string::npos) << failure->what;
      EXPECT_NE(failure->what.find("1.5 s"), std::string::npos) << failure->what;
    });
  }
}

// A call's time runs from when the stream reaches it.
TEST_P(GpuHostStagedEnds, WhatTheStreamHasBeforeACallIsNotOfItsTime) {
  Hosts::Settings settings = settings_of(GetParam());
  settings.timeout = std::chrono::milliseconds(1000);
  Hosts world(2, 1, settings);
  std::vector<Words> kept;
  const StagedCase what{Collective::broadcast, 1000};
  prepare(world, what, kept);
  world.for_each([&](int rank) {
    enqueue_delay(2'000'000'000, world.stream(rank));
    must(call_api(world.comm(rank), call_of(world, what, rank)));
  });
  check(world, what);
  EXPECT_FALSE(world.comm(0).failure());
}

TEST_P(GpuHostStagedEnds, AnAbortReleasesTheStream) {
  Hosts world(2, 1, settings_of(GetParam()));
  world.for_each([&](int rank) {
    if (rank > 0) return;
    must(call_api(world.comm(0), call_of(world, {Collective::all_gather, 100'000}, 0)));
    must(call_api(world.comm(0), call_of(world, {Collective::barrier}, 0)));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto begin = Clock::now();
  world.comm(0).abort();
  world.for_each([&](int rank) { synchronize(world, rank); });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST_P(GpuHostStagedEnds, CallsThatDifferAreNamed) {
  Hosts world(2, 1, settings_of(GetParam()));
  world.for_each([&](int rank) {
    const auto count = static_cast<std::uint64_t>(1000 + rank);
    must(call_api(world.comm(rank), call_of(world, {Collective::all_gather, count}, rank)));
    synchronize(world, rank);
  });
  world.for_each([&](int rank) {
    const auto failure = world.comm(rank).async_error();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, Errc::mismatch) << failure->what;
  });
}

/// Until it goes, the ranks' GPUs run what is not the communicator's.
class Hang {
 public:
  Hang(Hosts& world, std::uint64_t ns) : world_(world) {
    streams_.resize(static_cast<std::size_t>(world.size()));
    world.for_each([&](int rank) {
      must(cudaStreamCreateWithFlags(&at(rank), cudaStreamNonBlocking), "stream");
      enqueue_delay(ns, at(rank));
    });
  }
  ~Hang() {
    world_.for_each([&](int rank) { cudaStreamDestroy(at(rank)); });
  }
  Hang(const Hang&) = delete;
  Hang& operator=(const Hang&) = delete;

 private:
  cudaStream_t& at(int rank) { return streams_[static_cast<std::size_t>(rank)]; }
  Hosts& world_;
  std::vector<cudaStream_t> streams_;
};

TEST_P(GpuHostStagedEnds, ACommunicatorWaitsForItsOwnCallsAlone) {
  for (const bool fails : {false, true}) {
    Hosts world(2, 1, settings_of(GetParam()));
    for (int call = 0; call < 3; ++call) launch_all(world, {Collective::all_gather, 100'000});
    world.for_each([&](int rank) { synchronize(world, rank); });
    const Hang hang(world, 4'000'000'000);
    if (fails) world.comm(0).abort();
    const auto begin = Clock::now();
    world.for_each([&](int rank) { world.end(rank); });
    EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(fails ? 400 : 2000)) << fails;
  }
}

// Whose stream never comes to it, so that its own time does not run.
TEST_P(GpuHostStagedEnds, AHostCallBehindAStagedOneHasADeadline) {
  Hosts::Settings settings = settings_of(GetParam());
  settings.timeout = std::chrono::milliseconds(500);
  Hosts world(2, 1, settings);
  world.for_each([&](int rank) {
    if (rank > 0) return;
    enqueue_delay(6'000'000'000, world.stream(0));
    must(call_api(world.comm(0), call_of(world, {Collective::all_gather, 1000}, 0)));
    const auto begin = Clock::now();
    std::uint32_t word = 1;
    gdrx::Call call;
    call.collective = Collective::all_reduce;
    call.type = DataType::uint32;
    call.input = call.output = reinterpret_cast<std::byte*>(&word);
    call.count = 1;
    const auto ended = call_api(world.comm(0), call);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().code, Errc::timeout);
    EXPECT_NE(ended.error().what.find("stream"), std::string::npos) << ended.error().what;
  });
}

gdrx::Call message(Hosts& world, int rank, bool sends) {
  gdrx::Call call;
  call.collective = Collective::send_recv;
  call.type = DataType::uint32;
  call.count = 1000;
  call.root = Rank{1 - rank};
  call.sends = sends;
  call.input = sends ? input_at(world, rank) : nullptr;
  call.output = sends ? nullptr : output_at(world, rank);
  call.stream = world.stream(rank);
  return call;
}

// Each comes later than the one before, and within its time: who waits for the last is patient
// while the calls before it run.
TEST_P(GpuHostStagedEnds, WhoWaitsForALaterCallIsPatientWithThoseBeforeIt) {
  Hosts::Settings settings = settings_of(GetParam());
  settings.timeout = std::chrono::milliseconds(1000);
  Hosts world(2, 1, settings);
  world.for_each([&](int rank) {
    constexpr int kCalls = 5;
    std::shared_ptr<Operation> last;
    for (int i = 0; i < kCalls; ++i) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
      const gdrx::Call call = message(world, rank, rank == 1);
      if (rank == 1 || i + 1 < kCalls) {
        must(world.comm(rank).launch(call));
      } else {
        last = must(world.comm(rank).post(call));
      }
    }
    if (last) {
      const auto ended = world.comm(rank).wait(*last);
      EXPECT_TRUE(ended) << ended.error().what;
    }
    synchronize(world, rank);
  });
}

// Each launch of the graph gives who waits for the stream time anew, but not for ever.
TEST_P(GpuHostStagedEnds, AGraphThatIsReplayedBesideAHangingStreamDoesNotKeepWhoWaitsForIt) {
  if (GetParam() != std::string("tcp")) GTEST_SKIP() << "the same over every fabric";
  Hosts world(2, 1, settings_of(GetParam()));
  auto graphs = capture_all(world, {Collective::all_gather, 1000});
  std::atomic<bool> over{false};
  world.for_each([&](int rank) {
    cudaStream_t hangs = nullptr;
    std::thread waits;
    if (rank == 0) {
      must(cudaStreamCreateWithFlags(&hangs, cudaStreamNonBlocking), "stream");
      enqueue_delay(24'000'000'000, hangs);
      gdrx::Call call = call_of(world, {Collective::all_gather, 1000}, 0);
      call.stream = hangs;
      call.timeout = std::chrono::milliseconds(30);
      waits = std::thread([&over, &world, posted = must(world.comm(0).post(call))] {
        const auto begin = Clock::now();
        const auto ended = world.comm(0).wait(*posted);
        EXPECT_LT(Clock::now() - begin, std::chrono::seconds(20));
        EXPECT_FALSE(ended);
        if (!ended) {
          EXPECT_NE(ended.error().what.find("its stream has not come to it"), std::string::npos)
              << ended.error().what;
        }
        over = true;
      });
    }
    while (!over) {
      must(cudaGraphLaunch(graphs[static_cast<std::size_t>(rank)], world.stream(rank)), "launch");
      synchronize(world, rank);
    }
    if (rank > 0) return;
    waits.join();
    must(cudaStreamDestroy(hangs), "stream");
  });
  end(graphs);
}

// As when a communicator is destroyed while there is no memory: a request holds its operation on.
TEST_P(GpuHostStagedEnds, AnOperationThatOutlivesItsCommunicatorHoldsNothingOfIt) {
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<std::shared_ptr<Operation>> kept;
  world.for_each([&](int rank) {
    if (rank > 0) return;
    for (int i = 0; i < 2; ++i) {  // one runs, and one waits for it
      gdrx::Call call = call_of(world, {Collective::all_gather, 1000}, rank);
      call.stream = nullptr;
      kept.push_back(must(world.comm(rank).post(call)));
    }
  });
  for (const auto& operation : kept) ASSERT_TRUE(operation->staging);
  ASSERT_TRUE(kept.front()->execution);
  world.destroy(0);
  for (const auto& operation : kept) {
    EXPECT_FALSE(operation->staging);
    EXPECT_FALSE(operation->execution);
  }
}

// Mostly the words for it are all that is missing. On a busy machine the wait may drive the call
// before, and miss memory there: that is an error of its own, and ends the wait as well.
TEST_P(GpuHostStagedEnds, AWaitIsGivenUpWhereThereIsNoMemoryToo) {
  if (GetParam() != std::string("tcp")) GTEST_SKIP() << "the same over every fabric";
  bool came = true;
  for (long allocation = 1; came; ++allocation) {
    Hosts::Settings settings = settings_of(GetParam());
    settings.timeout = std::chrono::milliseconds(50);
    Hosts world(2, 1, settings);
    world.for_each([&](int rank) {
      if (rank > 0) return;
      enqueue_delay(1'500'000'000, world.stream(0));
      const gdrx::Call call = call_of(world, {Collective::all_gather, 1000}, 0);
      const auto posted = must(world.comm(0).post(call));
      const test::Shortage shortage(allocation);
      EXPECT_NO_THROW({
        const auto ended = world.comm(0).wait(*posted);
        ASSERT_FALSE(ended);
        EXPECT_TRUE(ended.error().code == Errc::timeout || ended.error().code == Errc::system)
            << describe(ended.error());
      });
      came = test::Shortage::came();
    });
  }
}

TEST_P(GpuHostStagedEnds, PinnedMemoryOfRanksThatShareNoGpusIsNotKept) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
  Hosts world(2, 1, settings_of(GetParam()));
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const MemoryHeld held = world.comm(0).memory_held();
  EXPECT_EQ(held.gpu, 0U) << "the ranks were to have no path";
  EXPECT_EQ(held.pinned, 0U);
  EXPECT_EQ(held.registered, 0U);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuHostStagedEnds, testing::Values("tcp", "pinned"));

}  // namespace
}  // namespace gdrx::gpu
