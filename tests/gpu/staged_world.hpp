// SPDX-License-Identifier: Apache-2.0
// Calls of GPU memory that the host makes, in streams: what each rank has, calls and then has.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collectives/comm/parts.hpp"
#include "gdrx/traits.hpp"
#include "tests/gpu/hosts.hpp"

namespace gdrx::gpu {

using Words = std::vector<std::uint32_t>;

/// A collective of uint32, sums, root 1.
struct StagedCase {
  Collective collective{};
  std::uint64_t count = 0;  // of elements, as the API's function defines it, or about that of parts
  std::uint32_t round = 0;  // other numbers in each

  std::string name() const {
    return std::string(to_string(collective)) + ", " + std::to_string(count);
  }
};

inline constexpr std::uint32_t kUntouched = 0xa5a5a5a5;

/// Elements from rank `from` to rank `to`, where parts differ; some are empty.
inline std::uint64_t part_count(const StagedCase& what, int from, int to) {
  return (from + to) % 3 == 2 ? 0 : what.count + static_cast<std::uint64_t>(2 * from + to);
}

inline Words input_of(const StagedCase& what, int rank, std::uint64_t elements) {
  Words words(elements);
  for (std::uint64_t i = 0; i < elements; ++i) {
    words[i] = static_cast<std::uint32_t>(rank + 1) * 1'000'003 +
               static_cast<std::uint32_t>(i) * 7 + what.round * 7919;
  }
  return words;
}

/// The collective's call of a rank, without its buffers and stream. Parts have a gap of 3 behind
/// each.
gdrx::Call staged_call(const StagedCase& what, int rank, int ranks);

/// What the rank has in the beginning of its output afterwards, kUntouched in gaps and behind.
Words expected_of(const StagedCase& what, int rank, int ranks);

/// As the C API decides: 0 if it was enqueued.
inline Result<void> call_api(Communicator& comm, gdrx::Call call) {
  add_parts(call, comm.rank(), comm.size());
  if (call.stream != nullptr && comm.runs_in_stream(call)) return comm.launch(call);
  return comm.run(call);
}

inline constexpr std::uint64_t kRoom = 8 << 20;  // bytes of inputs

inline std::byte* input_at(Hosts& world, int rank) {
  return const_cast<std::byte*>(world.call({}, rank).input);
}
inline std::byte* output_at(Hosts& world, int rank) { return world.call({}, rank).output; }

/// Inputs on their way in every rank's stream behind a delay, outputs poisoned.
inline void prepare(Hosts& world, const StagedCase& what, std::vector<Words>& kept) {
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

inline gdrx::Call call_of(Hosts& world, const StagedCase& what, int rank) {
  gdrx::Call call = staged_call(what, rank, world.size());
  call.input = input_at(world, rank);
  call.output = output_at(world, rank);
  call.stream = world.stream(rank);
  return call;
}

/// In the stream, without waiting for it.
inline void check(Hosts& world, const StagedCase& what) {
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

inline void launch_all(Hosts& world, const StagedCase& what) {
  world.for_each([&](int rank) { must(call_api(world.comm(rank), call_of(world, what, rank))); });
}

/// A graph a rank, one after the other.
inline std::vector<cudaGraphExec_t> capture_all(Hosts& world, const StagedCase& what) {
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

inline void end(std::vector<cudaGraphExec_t>& graphs) {
  for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
  graphs.clear();
}

inline void launch_graphs(Hosts& world, const std::vector<cudaGraphExec_t>& graphs) {
  world.for_each([&](int rank) {
    must(cudaGraphLaunch(graphs[static_cast<std::size_t>(rank)], world.stream(rank)), "launch");
  });
}

}  // namespace gdrx::gpu
