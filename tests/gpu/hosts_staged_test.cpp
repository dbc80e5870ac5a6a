// SPDX-License-Identifier: Apache-2.0
// Collectives between hosts that no kernel does, in the order of a stream: nobody waits for the
// calls but the stream, and graphs repeat them. Skipped without a GPU.
#include <chrono>
#include <thread>

#include "tests/gpu/staged_world.hpp"

namespace gdrx::gpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint64_t kRoom = 8 << 20;  // bytes of inputs

constexpr Collective kAll[] = {Collective::broadcast,    Collective::reduce,
                               Collective::all_gather,   Collective::reduce_scatter,
                               Collective::all_to_all,   Collective::gather,
                               Collective::scatter,      Collective::scan,
                               Collective::exscan,       Collective::all_to_all_v,
                               Collective::all_gather_v, Collective::gather_v,
                               Collective::scatter_v,    Collective::reduce_scatter_v};

class GpuHostStaged : public GpuHosts {
 protected:
  static int gpus_of_a_host() { return std::min(2, gpu_count()); }
};

std::byte* input_at(Hosts& world, int rank) {
  return const_cast<std::byte*>(world.call({}, rank).input);
}
std::byte* output_at(Hosts& world, int rank) { return world.call({}, rank).output; }

void synchronize(const Hosts& world, int rank) {
  must(cudaStreamSynchronize(world.stream(rank)), "cudaStreamSynchronize");
}

/// Inputs on their way in every rank's stream behind a delay, outputs poisoned.
void prepare(Hosts& world, const StagedCase& what, std::vector<Words>& kept) {
  kept.resize(static_cast<std::size_t>(world.size()));
  world.for_each([&](int rank) {
    Words& words = kept[static_cast<std::size_t>(rank)];
    words = input_of(what, rank, kRoom / 4);
    const std::uint64_t length = expected_of(what, rank, world.size()).size() * 4;
    must(cudaMemsetAsync(output_at(world, rank), 0xa5, length, world.stream(rank)), "memset");
    must(cudaMemsetAsync(input_at(world, rank), 0, kRoom, world.stream(rank)), "memset");
    synchronize(world, rank);
  });
  world.for_each([&](int rank) {
    enqueue_delay(static_cast<std::uint64_t>(rank % 3) * 300'000, world.stream(rank));
    must(cudaMemcpyAsync(input_at(world, rank), kept[static_cast<std::size_t>(rank)].data(), kRoom,
                         cudaMemcpyHostToDevice, world.stream(rank)),
         "copy");
  });
}

gdrx::Call call_of(Hosts& world, const StagedCase& what, int rank) {
  gdrx::Call call = staged_call(what, rank, world.size());
  call.input = input_at(world, rank);
  call.output = output_at(world, rank);
  call.stream = world.stream(rank);
  return call;
}

/// In the stream, without waiting for it.
void check(Hosts& world, const StagedCase& what) {
  world.for_each([&](int rank) {
    const Words expected = expected_of(what, rank, world.size());
    Words got(expected.size());
    must(cudaMemcpyAsync(got.data(), output_at(world, rank), got.size() * 4, cudaMemcpyDeviceToHost,
                         world.stream(rank)),
         "copy");
    synchronize(world, rank);
    if (what.collective == Collective::exscan && rank == 0) return;  // undefined there
    EXPECT_TRUE(got == expected) << what.name() << ", rank " << rank << ", round " << what.round;
  });
}

void launch_all(Hosts& world, const StagedCase& what) {
  world.for_each([&](int rank) { must(call_api(world.comm(rank), call_of(world, what, rank))); });
}

TEST_P(GpuHostStaged, EveryCollectiveIsRightInTheOrderOfItsStream) {
  Hosts world(2, gpus_of_a_host(), settings_of(GetParam()));
  std::vector<Words> kept;
  for (const Collective collective : kAll) {
    for (const std::uint64_t count : {0, 1, 1021, 250'001}) {
      const StagedCase what{collective, count};
      prepare(world, what, kept);
      world.for_each([&](int rank) {
        EXPECT_TRUE(world.comm(rank).runs_in_stream(call_of(world, what, rank))) << what.name();
      });
      launch_all(world, what);
      check(world, what);
    }
  }
  EXPECT_TRUE(world.comm(0).last_operation().staged);
}

TEST_P(GpuHostStaged, CallsReturnAtOnceAndTheStreamWaitsForTheResult) {
  constexpr auto kBusy = std::chrono::milliseconds(1200);
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<Words> kept;
  const StagedCase what{Collective::broadcast, 300'001};
  prepare(world, what, kept);
  world.for_each([&](int rank) {
    enqueue_delay(std::chrono::nanoseconds(kBusy).count(), world.stream(rank));
    const auto begin = Clock::now();
    for (int i = 0; i < 3; ++i) {
      must(call_api(world.comm(rank), call_of(world, what, rank)));
    }
    EXPECT_LT(Clock::now() - begin, kBusy * 3 / 4) << "the call waited for its stream";
  });
  check(world, what);
}

template <class Body>
cudaGraphExec_t capture(Hosts& world, int rank, Body launch) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  const cudaStream_t stream = world.stream(rank);
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  launch();
  must(cudaStreamEndCapture(stream, &graph), "capture");
  must(cudaGraphInstantiate(&made, graph, 0), "instantiate");
  cudaGraphDestroy(graph);
  return made;
}

/// A graph a rank, one rank's after the other's: a capture of global mode is beside no other.
std::vector<cudaGraphExec_t> capture_all(Hosts& world, const StagedCase& what) {
  std::vector<cudaGraphExec_t> graphs(static_cast<std::size_t>(world.size()));
  for (int only = 0; only < world.size(); ++only) {
    world.for_each([&](int rank) {
      if (rank != only) return;
      graphs[static_cast<std::size_t>(rank)] = capture(
          world, rank, [&] { must(call_api(world.comm(rank), call_of(world, what, rank))); });
    });
  }
  return graphs;
}

void end(std::vector<cudaGraphExec_t>& graphs) {
  for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
  graphs.clear();
}

void launch_graphs(Hosts& world, const std::vector<cudaGraphExec_t>& graphs) {
  world.for_each([&](int rank) {
    must(cudaGraphLaunch(graphs[static_cast<std::size_t>(rank)], world.stream(rank)), "launch");
  });
}

TEST_P(GpuHostStaged, AGraphRepeatsEveryCollective) {
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<Words> kept;
  for (const Collective collective : kAll) {
    StagedCase what{collective, 1021};
    auto graphs = capture_all(world, what);
    for (what.round = 0; what.round < 3; ++what.round) {
      prepare(world, what, kept);
      launch_graphs(world, graphs);
      check(world, what);
    }
    launch_all(world, what);  // a call of no graph finds all as it was
    world.for_each([&](int rank) { synchronize(world, rank); });
    end(graphs);
  }
}

TEST_P(GpuHostStaged, AGraphIsReplayedAHundredTimesWithOtherNumbers) {
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<Words> kept;
  StagedCase what{Collective::all_gather, 5'003};
  auto graphs = capture_all(world, what);
  for (what.round = 0; what.round < 100; ++what.round) {
    kept.assign(2, {});
    world.for_each([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      kept[at] = input_of(what, rank, what.count);
      must(cudaMemcpyAsync(input_at(world, rank), kept[at].data(), what.count * 4,
                           cudaMemcpyHostToDevice, world.stream(rank)),
           "copy");
      must(cudaGraphLaunch(graphs[at], world.stream(rank)), "launch");
      Words got(what.count * 2);
      must(cudaMemcpyAsync(got.data(), output_at(world, rank), got.size() * 4,
                           cudaMemcpyDeviceToHost, world.stream(rank)),
           "copy");
      synchronize(world, rank);
      Words expected = expected_of(what, rank, 2);
      expected.resize(got.size());
      EXPECT_TRUE(got == expected) << "round " << what.round << ", rank " << rank;
    });
  }
  end(graphs);
}

TEST_P(GpuHostStaged, AGraphThatOutlivesItsCommunicatorDoesNothing) {
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

TEST_P(GpuHostStaged, TwoStreamsKeepTheOrderOfTheCalls) {
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<Words> kept;
  const StagedCase what{Collective::broadcast, 100'003};
  std::vector<cudaStream_t> others(2);
  prepare(world, what, kept);
  world.for_each([&](int rank) {
    must(cudaStreamCreateWithFlags(&others[static_cast<std::size_t>(rank)], cudaStreamNonBlocking),
         "stream");
  });
  world.for_each([&](int rank) {
    for (int i = 0; i < 6; ++i) {
      gdrx::Call call = call_of(world, what, rank);
      if (i % 2 == 1) {  // of the result, which is so the same again
        call.stream = others[static_cast<std::size_t>(rank)];
        call.input = call.output;
      }
      must(call_api(world.comm(rank), call));
    }
  });
  check(world, what);
  world.for_each([&](int rank) {
    must(cudaStreamSynchronize(others[static_cast<std::size_t>(rank)]), "synchronize");
    cudaStreamDestroy(others[static_cast<std::size_t>(rank)]);
  });
}

TEST_P(GpuHostStaged, ARequestEndsWithTheResultInPlace) {
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<Words> kept;
  const StagedCase what{Collective::scan, 70'001};
  prepare(world, what, kept);
  world.for_each([&](int rank) {
    gdrx::Call call = call_of(world, what, rank);
    must(cudaMemcpyAsync(call.output, call.input, what.count * 4, cudaMemcpyDeviceToDevice,
                         world.stream(rank)),
         "copy");
    call.input = call.output;
    auto request = must(world.comm(rank).post(call));
    must(world.comm(rank).wait(*request));
  });
  check(world, what);
}

TEST_P(GpuHostStaged, ABarrierHoldsTheStreamsUntilAllAreThere) {
  Hosts world(2, 1, settings_of(GetParam()));
  constexpr auto kLate = std::chrono::milliseconds(400);
  world.for_each([&](int rank) {
    const auto begin = Clock::now();
    if (rank == 1) enqueue_delay(std::chrono::nanoseconds(kLate).count(), world.stream(rank));
    must(call_api(world.comm(rank), call_of(world, {Collective::barrier}, rank)));
    EXPECT_LT(Clock::now() - begin, kLate / 2);
    synchronize(world, rank);
    EXPECT_GT(Clock::now() - begin, kLate * 9 / 10);
  });
}

TEST_P(GpuHostStaged, ARankThatDoesNotCallIsNamedAndTheStreamEnds) {
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
TEST_P(GpuHostStaged, WhatTheStreamHasBeforeACallIsNotOfItsTime) {
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

TEST_P(GpuHostStaged, AnAbortReleasesTheStream) {
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

TEST_P(GpuHostStaged, CallsThatDifferAreNamed) {
  Hosts world(2, 1, settings_of(GetParam()));
  world.for_each([&](int rank) {
    const auto count = static_cast<std::uint64_t>(1000 + rank);
    must(call_api(world.comm(rank), call_of(world, {Collective::broadcast, count}, rank)));
    synchronize(world, rank);
  });
  world.for_each([&](int rank) {
    const auto failure = world.comm(rank).async_error();
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, Errc::mismatch) << failure->what;
  });
}

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuHostStaged, testing::Values("tcp", "pinned"));

}  // namespace
}  // namespace gdrx::gpu
