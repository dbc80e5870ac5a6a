// SPDX-License-Identifier: Apache-2.0
// Collectives between hosts that no kernel does, in the order of a stream: nobody waits for the
// calls but the stream, and graphs repeat them. Skipped without a GPU.
#include <chrono>
#include <thread>

#include "tests/gpu/staged_world.hpp"

namespace gdrx::gpu {
namespace {

using Clock = std::chrono::steady_clock;

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

TEST_P(GpuHostStaged, CallsInPlaceAreRight) {
  Hosts world(2, 1, settings_of(GetParam()));
  std::vector<Words> kept;
  for (const Collective collective :
       {Collective::broadcast, Collective::all_gather, Collective::all_to_all}) {
    const StagedCase what{collective, 10'007};
    prepare(world, what, kept);
    world.for_each([&](int rank) {
      gdrx::Call call = call_of(world, what, rank);
      const bool own_block = collective == Collective::all_gather;
      const std::uint64_t bytes = what.count * 4;
      const std::byte* const from = call.input;
      std::byte* const to =
          call.output + (own_block ? static_cast<std::uint64_t>(rank) * bytes : 0);
      must(cudaMemcpyAsync(to, from, collective == Collective::all_to_all ? 2 * bytes : bytes,
                           cudaMemcpyDeviceToDevice, world.stream(rank)),
           "copy");
      call.input = to;
      must(call_api(world.comm(rank), call));
    });
    check(world, what);
  }
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

// A reduce to rank 1, which tells all what it has.
TEST_P(GpuHostStaged, EveryTypeAndOperatorIsRight) {
  Hosts world(2, 1, settings_of(GetParam()));
  for (const DataType type : {DataType::int8, DataType::uint64, DataType::float16,
                              DataType::bfloat16, DataType::float32, DataType::float64}) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::avg}) {
      const Hosts::Case what{type, op, 3'001};
      world.prepare(what);
      world.for_each([&](int rank) {
        gdrx::Call call = world.call(what, rank);
        call.root = Rank{1};
        call.collective = Collective::reduce;
        must(call_api(world.comm(rank), call));
        call.collective = Collective::broadcast;
        call.input = call.output;
        must(call_api(world.comm(rank), call));
        synchronize(world, rank);
      });
      world.check_results(what);
    }
  }
}

/// Behind the inputs, in every rank's stream: the factor of this round, which the call before must
/// have read.
void set_factors(Hosts& world, std::uint32_t round, std::vector<std::uint32_t>& factors) {
  factors.resize(static_cast<std::size_t>(world.size()));
  world.for_each([&](int rank) {
    std::uint32_t& factor = factors[static_cast<std::size_t>(rank)];
    factor = 3 + round * 10 + static_cast<std::uint32_t>(rank);
    must(cudaMemcpyAsync(input_at(world, rank) + kRoom - 4, &factor, 4, cudaMemcpyHostToDevice,
                         world.stream(rank)),
         "copy");
  });
}

/// Inputs are multiplied first. Rank 1 gets the sums, by any of the calls.
gdrx::Call scaled_call(Hosts& world, const StagedCase& what, int rank) {
  gdrx::Call call = call_of(world, what, rank);
  auto made = std::make_shared<MadeOperator>();
  made->kind = ReduceOp::premul_sum;
  made->type = DataType::uint32;
  made->scalar_at = input_at(world, rank) + kRoom - 4;
  call.op = made->kind;
  call.made = std::move(made);
  return call;
}

void expect_scaled(Hosts& world, const StagedCase& what, const std::vector<Words>& kept,
                   const std::vector<std::uint32_t>& factors) {
  Words got(what.count);
  must(cudaMemcpyAsync(got.data(), output_at(world, 1), got.size() * 4, cudaMemcpyDeviceToHost,
                       world.stream(1)),
       "copy");
  world.for_each([&](int rank) { synchronize(world, rank); });
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::uint32_t sum = 0;
    for (std::size_t rank = 0; rank < kept.size(); ++rank) sum += factors[rank] * kept[rank][i];
    ASSERT_EQ(got[i], sum) << "element " << i << " of round " << what.round;
  }
}

void read_factors(Hosts& world, StagedCase what) {
  std::vector<Words> kept;
  std::vector<std::uint32_t> factors;
  std::vector<cudaGraphExec_t> graphs(2);
  world.for_each([&](int rank) {
    graphs[static_cast<std::size_t>(rank)] = capture(
        world, rank, [&] { must(call_api(world.comm(rank), scaled_call(world, what, rank))); });
  });
  for (what.round = 0; what.round < 4; ++what.round) {
    prepare(world, what, kept);
    set_factors(world, what.round, factors);
    if (what.round < 3) {
      launch_graphs(world, graphs);
    } else {
      world.for_each([&](int rank) {
        gdrx::Call call = scaled_call(world, what, rank);
        EXPECT_TRUE(world.comm(rank).runs_in_stream(call));
        must(call_api(world.comm(rank), std::move(call)));
      });
    }
    expect_scaled(world, what, kept, factors);
  }
  end(graphs);
  set_factors(world, 9, factors);
  world.for_each([&](int rank) {  // without a stream the caller waits
    synchronize(world, rank);
    gdrx::Call call = scaled_call(world, what, rank);
    call.stream = nullptr;
    must(call_api(world.comm(rank), std::move(call)));
  });
  expect_scaled(world, what, kept, factors);
}

TEST_P(GpuHostStaged, AFactorOnTheGpuIsReadByEachCallInItsStream) {
  Hosts world(2, 1, settings_of(GetParam()));
  for (const Collective collective : {Collective::reduce, Collective::all_reduce}) {
    read_factors(world, {collective, 1021});
  }
}

TEST_P(GpuHostStaged, TwoCommunicatorsWaitForNoneOfTheOther) {
  Hosts first(2, 1, settings_of(GetParam()));
  Hosts second(2, 1, settings_of(GetParam()));
  std::vector<Words> kept[2];
  const StagedCase what{Collective::all_to_all, 40'000};
  prepare(first, what, kept[0]);
  prepare(second, what, kept[1]);
  first.for_each([&](int rank) {
    Hosts* const order[] = {rank == 0 ? &first : &second, rank == 0 ? &second : &first};
    for (Hosts* world : order) {
      must(call_api(world->comm(rank), call_of(*world, what, rank)));
    }
    for (Hosts* world : order) synchronize(*world, rank);
  });
  check(first, what);
  check(second, what);
}

TEST_P(GpuHostStaged, PinnedMemoryIsBoundedByTheLargestCall) {
  Hosts world(2, 1, settings_of(GetParam()));
  const std::uint64_t before = world.comm(0).memory_held().pinned;
  constexpr std::uint64_t kMost = 300'000;
  for (std::uint64_t count = 1'000; count <= kMost; count += 13'000) {
    const StagedCase what{Collective::all_gather, count};
    auto graphs = capture_all(world, what);  // each names memory
    launch_graphs(world, graphs);
    launch_all(world, what);
    world.for_each([&](int rank) { synchronize(world, rank); });
    end(graphs);
  }
  const std::uint64_t used = 3 * kMost * sizeof(std::uint32_t);
  EXPECT_LT(world.comm(0).memory_held().pinned - before, 4 * used);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuHostStaged, testing::Values("tcp", "pinned"));

}  // namespace
}  // namespace gdrx::gpu
