// SPDX-License-Identifier: Apache-2.0
// allReduce between hosts in the order of a stream: nobody waits for the calls but the stream, and
// graphs repeat them. Over UCX and over simulated NICs. Skipped without a GPU.
#include <array>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/gpu/hosts.hpp"

namespace gdrx::gpu {
namespace {

using Clock = std::chrono::steady_clock;

class GpuHostStreams : public GpuHosts {};

int gpus_of_a_host() { return std::min(2, gpu_count()); }

/// Then calls in place that keep the result, which are wrong unless they come after it.
void launch_three(Hosts& world, const Hosts::Case& sum, int rank) {
  must(world.comm(rank).launch(world.call(sum, rank)));
  Hosts::Case again = sum;
  again.in_place = true;
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    again.op = op;
    must(world.comm(rank).launch(world.call(again, rank)));
  }
}

/// A graph a rank.
class Graphs {
 public:
  /// `meanwhile`: before the captures end.
  Graphs(
      Hosts& world, const Hosts::Case& what,
      const std::function<void(int rank)>& meanwhile = [](int) {})
      : world_(world), graphs_(static_cast<std::size_t>(world.size())) {
    world_.for_each([&](int rank) {
      at(rank) = capture(world_, rank, [&] {
        launch_three(world_, what, rank);
        meanwhile(rank);
      });
    });
  }
  ~Graphs() {
    for (cudaGraphExec_t graph : graphs_) cudaGraphExecDestroy(graph);
  }
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  void launch(int rank) { must(cudaGraphLaunch(at(rank), world_.stream(rank)), "launch"); }

 private:
  cudaGraphExec_t& at(int rank) { return graphs_[static_cast<std::size_t>(rank)]; }
  Hosts& world_;
  std::vector<cudaGraphExec_t> graphs_;
};

TEST_P(GpuHostStreams, CallsReturnAtOnceAndComeOneAfterAnother) {
  constexpr auto kBusy = std::chrono::milliseconds(1200);
  Hosts world(2, gpus_of_a_host(), settings_of(GetParam()));
  for (const std::uint64_t count : {1, 1021, 3'000'001}) {
    const Hosts::Case what{.count = count};
    world.prepare(what);
    world.for_each([&](int rank) {
      enqueue_delay(std::chrono::nanoseconds(kBusy).count(), world.stream(rank));
      const auto begin = Clock::now();
      launch_three(world, what, rank);
      EXPECT_LT(Clock::now() - begin, kBusy * 3 / 4) << "the call waited for its stream";
    });
    world.for_each([&](int rank) { synchronize(world, rank); });
    world.check_results(what);
  }
}

void copy(std::byte* to, const std::byte* from, const Hosts::Case& what, cudaStream_t stream) {
  must(cudaMemcpyAsync(to, from, what.bytes(), cudaMemcpyDeviceToDevice, stream), "copy");
}

/// A large call, the small one, a large one. The last rank's small one is of odd addresses, where a
/// GPU alone needs more than one kernel for it.
void launch_mixed(Hosts& world, const Hosts::Case& small, int rank) {
  constexpr std::uint64_t kOdd = (24 << 20) + 1;
  constexpr std::uint64_t kLarge = 30 << 20;
  const cudaStream_t stream = world.stream(rank);
  gdrx::Call large = world.call({.count = 2'000'003}, rank);  // of zeros
  large.input = large.output = const_cast<std::byte*>(large.input) + kLarge;
  gdrx::Call call = world.call(small, rank);
  const gdrx::Call even = call;
  if (rank + 1 == world.size()) {
    copy(const_cast<std::byte*>(call.input) + kOdd, call.input, small, stream);
    call.input += kOdd;
    call.output += kOdd;
  }
  for (const gdrx::Call& each : {large, call, large}) must(world.comm(rank).launch(each));
  if (call.output != even.output) copy(even.output, call.output, small, stream);
}

TEST_P(GpuHostStreams, CallsOfOneKernelAndOfManyTakeTurns) {
  for (const int locals : {1, gpus_of_a_host()}) {
    Hosts world(2, locals, settings_of(GetParam()));
    for (const bool captured : {false, true, false}) {
      const Hosts::Case small{.count = 5000, .shift = 16, .round = captured ? 1 : 0};
      world.prepare(small);
      world.for_each([&](int rank) {
        if (!captured) return launch_mixed(world, small, rank);
        cudaGraphExec_t graph = capture(world, rank, [&] { launch_mixed(world, small, rank); });
        for (int i = 0; i < 3; ++i) must(cudaGraphLaunch(graph, world.stream(rank)), "launch");
        synchronize(world, rank);
        cudaGraphExecDestroy(graph);
      });
      world.for_each([&](int rank) { synchronize(world, rank); });
      world.check_results(small);
    }
  }
}

TEST_P(GpuHostStreams, AGraphRepeatsThem) {
  Hosts world(2, gpus_of_a_host(), settings_of(GetParam()));
  for (const std::uint64_t count : {5, 2'000'003}) {
    Hosts::Case what{.type = DataType::float16, .op = ReduceOp::avg, .count = count};
    Graphs graphs(world, what);
    for (what.round = 0; what.round < 4; ++what.round) {
      world.prepare(what);
      world.for_each([&](int rank) {
        graphs.launch(rank);
        // Behind the graph in the stream, and the next graph behind them.
        if (what.round % 2 == 1) launch_three(world, what, rank);
        if (what.round == 3) graphs.launch(rank);
      });
      world.for_each([&](int rank) { synchronize(world, rank); });
      world.check_results(what);
    }
    // A call that is driven by whoever waits finds everything as it was.
    world.check(DataType::int32, ReduceOp::sum, count, true, 0);
  }
}

TEST_P(GpuHostStreams, DrainingWaitsForGraphs) {
  Hosts world(2, 1, settings_of(GetParam()));
  const Hosts::Case what{.count = 500'000};
  Graphs graphs(world, what);
  world.prepare(what);
  world.for_each([&](int rank) {
    graphs.launch(rank);
    must(world.comm(rank).drain());
    EXPECT_EQ(cudaStreamQuery(world.stream(rank)), cudaSuccess);
  });
  world.check_results(what);
}

// Of one kernel and of many; the memory that it names is the next communicator's.
TEST_P(GpuHostStreams, AGraphMayOutliveItsCommunicator) {
  for (const int locals : {1, gpus_of_a_host()}) {
    for (const std::uint64_t count : {5, 2'000'003}) {
      Hosts world(2, locals, settings_of(GetParam()));
      const Hosts::Case what{.count = count};
      Graphs graphs(world, what);
      const auto launch_all = [&] {
        world.for_each([&](int rank) {
          graphs.launch(rank);
          synchronize(world, rank);
        });
        world.check_untouched(what);
      };
      world.for_each([&](int rank) { world.end(rank); });
      world.prepare(what);
      launch_all();
      world.make(settings_of(GetParam()));
      launch_all();
      for (const bool waited : {true, false}) {
        world.prepare(what);
        world.for_each([&](int rank) {
          graphs.launch(rank);
          if (waited) synchronize(world, rank);
          launch_three(world, what, rank);
          graphs.launch(rank);
        });
        world.for_each([&](int rank) { synchronize(world, rank); });
        world.check_results(what);
      }
      EXPECT_FALSE(world.comm(0).failure());
    }
  }
}

// In the thread that captures nothing: what was captured is a graph afterwards.
TEST_P(GpuHostStreams, ACaptureMayOutliveItsCommunicator) {
  Hosts world(2, gpus_of_a_host(), settings_of(GetParam()));
  const Hosts::Case what{.count = 100'000};
  Graphs graphs(world, what, [&](int rank) { std::jthread([&, rank] { world.end(rank); }); });
  world.prepare(what);
  world.for_each([&](int rank) {
    graphs.launch(rank);
    synchronize(world, rank);
  });
  world.check_untouched(what);
}

// However it is asked for, and on whichever rank.
TEST_P(GpuHostStreams, ACallOfNothingIsNothing) {
  Hosts world(2, 1, settings_of(GetParam()));
  world.for_each([&](int rank) {
    const gdrx::Call nothing = world.call({.count = 0}, rank);
    if (rank == 0) {
      must(world.comm(rank).launch(nothing));
      synchronize(world, rank);
    } else {
      must(world.comm(rank).wait(*must(world.comm(rank).post(nothing))));
    }
  });
  world.check(DataType::float32, ReduceOp::sum, 1000, false, 0);
}

// Streams that wait for the default one and it for them: whoever drives must not wait for it.
TEST_P(GpuHostStreams, StagedCallsGoOnBesideAStreamThatWaitsForThem) {
  Hosts world(2, 1, settings_of(GetParam()));
  const Hosts::Case what{.count = 100'000};
  std::array<cudaStream_t, 2> blocking{};
  std::array<std::byte*, 2> memory{};
  world.prepare(what);
  // All that waits for the device, in turns of its own: see Hosts::check().
  world.for_each([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    must(cudaStreamCreateWithFlags(&blocking[at], cudaStreamDefault), "stream");
    memory[at] = allocate<std::byte>(1 << 20);
    synchronize(world, rank);
  });
  world.for_each([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    for (const std::uint64_t bytes : {1000, 1 << 20}) {  // the second needs more room
      gdrx::Call staged;
      staged.collective = Collective::broadcast;
      staged.type = DataType::uint8;
      staged.input = staged.output = memory[at];
      staged.count = bytes;
      staged.stream = blocking[at];
      const auto request = must(world.comm(rank).post(staged));
      gdrx::Call sum = world.call(what, rank);
      sum.stream = blocking[at];
      must(world.comm(rank).launch(sum));
      must(world.comm(rank).wait(*request));
      must(cudaStreamSynchronize(blocking[at]), "synchronize");
    }
  });
  world.for_each([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    must(cudaStreamDestroy(blocking[at]), "destroy");
    must(cudaFree(memory[at]), "free");
  });
  world.check_results(what);
}

TEST_P(GpuHostStreams, ARequestIsRefusedWhereTheStreamIsCaptured) {
  Hosts world(2, 1, settings_of(GetParam()));
  world.for_each([&](int rank) {
    cudaGraph_t graph = nullptr;
    must(cudaStreamBeginCapture(world.stream(rank), cudaStreamCaptureModeThreadLocal), "capture");
    const auto posted = world.comm(rank).post(world.call({.count = 100}, rank));
    ASSERT_FALSE(posted);
    EXPECT_EQ(posted.error().code, Errc::unsupported);
    must(cudaStreamEndCapture(world.stream(rank), &graph), "capture");
    cudaGraphDestroy(graph);
  });
  world.check(DataType::float32, ReduceOp::sum, 1000, false, 0);
}

TEST_P(GpuHostStreams, ARankThatDoesNotCallIsNamedAndTheStreamEnds) {
  Hosts::Settings settings = settings_of(GetParam());
  settings.timeout = std::chrono::milliseconds(1500);
  Hosts world(2, 1, settings);
  world.for_each([&](int rank) {
    if (rank > 0) return;
    must(world.comm(0).launch(world.call({.count = 3'000'000}, 0)));
    synchronize(world, 0);
    const auto failure = world.comm(0).failure();
    ASSERT_TRUE(failure);
    EXPECT_NE(failure->what.find("rank 1"), std::string::npos) << failure->what;
  });
}

TEST_P(GpuHostStreams, ACallMayHaveATimeoutOfItsOwn) {
  for (const bool captured : {false, true}) {
    Hosts world(2, 1, settings_of(GetParam()));
    world.for_each([&](int rank) {
      if (rank > 0) return;
      gdrx::Call call = world.call({.count = 3'000'000}, 0);
      call.timeout = std::chrono::milliseconds(1500);
      const auto launch = [&] { must(world.comm(0).launch(call)); };
      const cudaGraphExec_t graph = captured ? capture(world, 0, launch) : nullptr;
      if (captured) {
        must(cudaGraphLaunch(graph, world.stream(0)), "launch");
      } else {
        launch();
      }
      synchronize(world, 0);
      const auto failure = world.comm(0).failure();
      ASSERT_TRUE(failure);
      EXPECT_NE(failure->what.find("1.5 s"), std::string::npos) << failure->what;
      if (captured) cudaGraphExecDestroy(graph);
    });
  }
}

TEST_P(GpuHostStreams, ARequestBehindWhatDoesNotEndIsGivenUp) {
  Hosts::Settings settings = settings_of(GetParam());
  settings.timeout = std::chrono::milliseconds(200);
  Hosts world(2, 1, settings);
  world.for_each([&](int rank) {
    if (rank > 0) return;
    enqueue_delay(6'000'000'000, world.stream(0));
    const auto posted = must(world.comm(0).post(world.call({.count = 1000}, 0)));
    const auto begin = Clock::now();
    const auto waited = world.comm(0).wait(*posted);
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, Errc::timeout) << waited.error().what;
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
    synchronize(world, 0);
  });
}

TEST_P(GpuHostStreams, AnAbortEndsWhatGraphsBegan) {
  Hosts world(2, gpus_of_a_host(), settings_of(GetParam()));
  Graphs graphs(world, {.count = 300'000});
  world.for_each([&](int rank) {
    if (rank + 1 < world.size()) graphs.launch(rank);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto begin = Clock::now();
  world.comm(0).abort();
  world.for_each([&](int rank) { synchronize(world, rank); });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(11));
}

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuHostStreams, testing::Values("ucx", "verbs", "pinned"));

}  // namespace
}  // namespace gdrx::gpu
