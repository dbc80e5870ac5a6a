// SPDX-License-Identifier: Apache-2.0
// Graphs that hold kernels of a communicator that is gone: nobody has its memory, or the next one.
// Skipped without a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "collectives/kernels/call.hpp"
#include "tests/gpu/network.hpp"
#include "tests/gpu/ranks.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::uint64_t kRoom = 1 << 20;  // of a buffer
constexpr int kPoison = 0xa5;

/// What outlives communicators: a stream, buffers and a graph for each rank.
struct Mine {
  Mine() = default;
  explicit Mine(int of_device) : device(of_device) {
    must(cudaSetDevice(device), "device");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    in = allocate<std::byte>(kRoom);
    out = allocate<std::byte>(kRoom);
  }
  int device = 0;
  cudaStream_t stream = nullptr;
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  cudaGraphExec_t graph = nullptr;
};

/// What a graph has of a rank.
struct Kept {
  const char* name = "";
  int ranks = 2;
  std::function<void(const Ranks&, int r, const Mine&)> enqueue;
  bool needs_network = false;  // it waits for one while its communicator is there
};

Kept kernel_of(const char* name, int ranks, const Shape& shape, std::uint64_t bytes) {
  const bool blocks = shape.kernel == Kernel::reduce_scatter || shape.kernel == Kernel::all_gather;
  const auto enqueue = [=](const Ranks& of, int r, const Mine& mine) {
    Work work{mine.in, mine.out, bytes, DataType::uint32, ReduceOp::sum};
    if (blocks) work.block = bytes / static_cast<std::uint64_t>(ranks);
    must(of.path(r).launch(work, shape, mine.stream));
  };
  return {name, ranks, enqueue};
}

std::vector<Kept> kernels_of_a_host() {
  constexpr int kThreeEach = 2;  // packs, of three ranks
  return {
      kernel_of("one-shot, words", 3, {Kernel::one_shot, 1, 32}, 8),
      kernel_of("one-shot, packs", 3, {Kernel::one_shot, 2, 64}, 2048),
      kernel_of("one-shot, any", 3, {Kernel::one_shot, 1, 64}, 5004),
      kernel_of("one-shot in tiles", 2, {Kernel::one_shot, 2, 64, 1, false, true}, 100'000),
      kernel_of("two-shot", 3, {Kernel::two_shot, 2, 64}, 4096),
      kernel_of("two-shot in tiles", 3, {Kernel::two_shot, 2, 64, 1, true}, 50'000),
      kernel_of("ring", 3, {Kernel::ring, 2, 64, 1, true}, 50'000),
      kernel_of("tree", 3, {Kernel::tree, 2, 64, 1, true}, 50'000),
      kernel_of("reduce-scatter", 3, {Kernel::reduce_scatter, 1, 64, kThreeEach}, 3 * 1024),
      kernel_of("reduce-scatter in tiles", 3, {Kernel::reduce_scatter, 1, 64, kThreeEach, true},
                3 * 9600),
      kernel_of("all-gather", 3, {Kernel::all_gather, 1, 64, kThreeEach}, 3 * 1024),
      kernel_of("a copy", 1, {Kernel::one_shot, 1, 32}, 1000),
      kernel_of("a large copy", 1, {Kernel::one_shot, 1, 32}, kRoom),
  };
}

Kept moves() {
  const auto enqueue = [](const Ranks& of, int r, const Mine& mine) {
    Moves what;
    what.collective = Collective::all_to_all;
    what.input = mine.in;
    what.output = mine.out;
    for (std::uint64_t p = 0; p < 3; ++p) {
      what.sends[p] = what.receives[p] = {p * 40'000, 40'000};
    }
    must(of.path(r).move(what, 2, mine.stream));
  };
  return {"a move", 3, enqueue};
}

HostSum sum_of(const Mine& mine) {
  HostSum sum;
  sum.own = sum.into = reinterpret_cast<std::uint8_t*>(mine.out);
  sum.landed = reinterpret_cast<const std::uint8_t*>(mine.in);
  sum.stride = 1024;
  sum.hosts = 2;
  sum.bytes = 1024;
  sum.type = DataType::uint32;
  return sum;
}

Kept relay(const char* name, int ranks, bool adds) {
  const auto enqueue = [=](const Ranks& of, int r, const Mine& mine) {
    const std::uint64_t block = 1024;
    const std::uint64_t bytes = block * static_cast<std::uint64_t>(ranks);
    Relay between{mine.out + kRoom / 2, {bytes, 3, 2, 1}, {}};
    if (adds) between.sum = sum_of(mine);
    EXPECT_TRUE(must(of.path(r).relay(
        {mine.in, mine.out, bytes, DataType::uint32, ReduceOp::sum, block}, between, mine.stream)));
  };
  return {name, ranks, enqueue, true};
}

std::vector<Kept> kernels_between_hosts() {
  const auto stop = [](const Ranks& of, int r, const Mine& mine) {
    must(of.path(r).step_flags({bit_of(Signal::begun) | bit_of(Signal::scattered), 1, {8, 3, 2, 1}},
                               mine.stream));
  };
  const auto combine = [](const Ranks& of, int r, const Mine& mine) {
    must(of.path(r).combine(sum_of(mine), mine.stream));
  };
  return {relay("a relay of one", 1, false),
          relay("a relay of one that adds", 1, true),
          relay("a relay of several", 3, false),
          {"a stop", 2, stop, true},
          {"a sum", 2, combine}};
}

class GpuGraphs : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  }
  void TearDown() override { clear(); }
  void clear() {
    for (const Mine& mine : mine_) {
      must(cudaSetDevice(mine.device), "device");
      if (mine.graph != nullptr) cudaGraphExecDestroy(mine.graph);
      cudaStreamDestroy(mine.stream);
      cudaFree(mine.in);
      cudaFree(mine.out);
    }
    mine_.clear();
  }

  static void register_buffers(const Ranks& ranks, const std::vector<std::byte*>& memory) {
    std::vector<std::unique_ptr<ExportedMemory>> offers;
    std::vector<Blob> tickets;
    for (int r = 0; r < ranks.size(); ++r) {
      offers.push_back(must(ranks.path(r).offer(memory[static_cast<std::size_t>(r)], kRoom)));
      tickets.push_back(offers.back()->ticket());
    }
    for (int r = 0; r < ranks.size(); ++r) {
      must(ranks.path(r).open_window(tickets, Deadline::never()));
    }
  }

  /// Captured by each rank of a communicator that is gone then. While it is there they work.
  void keep(const Kept& what) {
    const Ranks gone(what.ranks, 1024);
    std::vector<std::byte*> in, out;
    for (int r = 0; r < what.ranks; ++r) {
      mine_.emplace_back(r % gpu_count());
      in.push_back(mine_.back().in);
      out.push_back(mine_.back().out);
    }
    register_buffers(gone, in);
    register_buffers(gone, out);
    for (int r = 0; r < what.ranks; ++r) {
      Mine& mine = at(r);
      gone.use(r);
      cudaGraph_t graph = nullptr;
      must(cudaStreamBeginCapture(mine.stream, cudaStreamCaptureModeThreadLocal), "capture");
      what.enqueue(gone, r, mine);
      must(cudaStreamEndCapture(mine.stream, &graph), "capture");
      must(cudaGraphInstantiate(&mine.graph, graph, 0), "instantiate");
      cudaGraphDestroy(graph);
      arenas_.push_back(gone.path(r).ticket().pointer);
    }
    poison();
    if (what.needs_network) return;
    launch_all();
    synchronize();
    EXPECT_FALSE(is_untouched()) << "the graph holds nothing";
  }

  Mine& at(int r) { return mine_[static_cast<std::size_t>(r)]; }
  void poison() {
    for (const Mine& mine : mine_) {
      must(cudaSetDevice(mine.device), "device");
      must(cudaMemset(mine.in, 1, kRoom), "memset");
      must(cudaMemset(mine.out, kPoison, kRoom), "memset");
      must(cudaDeviceSynchronize(), "memset");
    }
  }
  bool is_untouched() const {
    const std::vector<std::byte> poison(kRoom, std::byte{kPoison});
    std::vector<std::byte> got(kRoom);
    for (const Mine& mine : mine_) {
      must(cudaSetDevice(mine.device), "device");
      must(cudaMemcpy(got.data(), mine.out, kRoom, cudaMemcpyDeviceToHost), "copy");
      if (got != poison) return false;
    }
    return true;
  }
  void launch(int r) {
    must(cudaSetDevice(at(r).device), "device");
    must(cudaGraphLaunch(at(r).graph, at(r).stream), "launch");
  }
  void launch_all() {
    for (std::size_t r = 0; r < mine_.size(); ++r) launch(static_cast<int>(r));
  }
  void synchronize() const {
    for (const Mine& mine : mine_) {
      must(cudaSetDevice(mine.device), "device");
      must(cudaStreamSynchronize(mine.stream), "synchronize");
    }
  }
  void expect_nothing_happens() {
    poison();
    launch_all();
    synchronize();
    launch(0);  // a kernel that enters would wait for the others
    synchronize();
    EXPECT_TRUE(is_untouched());
  }

  /// All that the arenas hold which the graphs know.
  std::vector<std::byte> content_of_arenas() const {
    std::vector<std::byte> all(arenas_.size() * kArenaBytes);
    for (std::size_t r = 0; r < arenas_.size(); ++r) {
      must(cudaSetDevice(mine_[r].device), "device");
      must(cudaMemcpy(all.data() + r * kArenaBytes, reinterpret_cast<const void*>(arenas_[r]),
                      kArenaBytes, cudaMemcpyDeviceToHost),
           "copy");
    }
    return all;
  }
  /// Communicators that have these arenas: some, where tests before this one left others idle.
  std::vector<std::unique_ptr<Ranks>> next_owners(int ranks) const {
    std::vector<std::unique_ptr<Ranks>> owners;
    std::set<std::uint64_t> missing(arenas_.begin(), arenas_.end());
    for (int i = 0; i < 100 && !missing.empty(); ++i) {
      owners.push_back(std::make_unique<Ranks>(ranks, 1024));
      for (int r = 0; r < ranks; ++r) missing.erase(owners.back()->path(r).ticket().pointer);
    }
    EXPECT_TRUE(missing.empty()) << "nobody has the memory again";
    return owners;
  }

  /// Calls of the communicator that has the arenas now, with old graphs at once.
  void expect_next_to_work(const Ranks& next) {
    constexpr std::uint64_t kWords = 250;
    constexpr int kCalls = 5;
    const std::vector<std::uint32_t> ones(kWords, 1);
    for (int r = 0; r < next.size(); ++r) {
      next.use(r);
      must(cudaMemcpy(next.out(r), ones.data(), kWords * 4, cudaMemcpyHostToDevice), "copy");
      must(cudaDeviceSynchronize(), "copy");
    }
    for (int call = 0; call < kCalls; ++call) {
      for (int r = 0; r < next.size(); ++r) {
        next.launch(r, {next.out(r), next.out(r), kWords * 4, DataType::uint32, ReduceOp::sum},
                    choose(next.host(), kWords * 4));
      }
      launch_all();
    }
    next.synchronize();
    synchronize();
    std::uint32_t product = 1;
    for (int call = 0; call < kCalls; ++call) product *= static_cast<std::uint32_t>(next.size());
    for (int r = 0; r < next.size(); ++r) {
      std::vector<std::uint32_t> got(kWords);
      next.use(r);
      must(cudaMemcpy(got.data(), next.out(r), kWords * 4, cudaMemcpyDeviceToHost), "copy");
      EXPECT_EQ(got, std::vector<std::uint32_t>(kWords, product));
      EXPECT_FALSE(next.path(r).kernel_error().happened);
      Control control;
      must(cudaMemcpy(&control, reinterpret_cast<const void*>(next.path(r).ticket().pointer),
                      sizeof control, cudaMemcpyDeviceToHost),
           "copy");
      EXPECT_EQ(control.calls, next.size() > 1 ? static_cast<std::uint32_t>(kCalls) : 0U);
      EXPECT_EQ(signalled(next.path(r), Signal::begun), 0U);
    }
    EXPECT_TRUE(is_untouched());
  }

  void check(const Kept& what) {
    SCOPED_TRACE(what.name);
    arenas_.clear();
    keep(what);
    expect_nothing_happens();
    {
      const auto owners = next_owners(what.ranks);
      const std::vector<std::byte> before = content_of_arenas();
      expect_nothing_happens();
      EXPECT_TRUE(content_of_arenas() == before) << "written to the next one's memory";
      for (const auto& next : owners) expect_next_to_work(*next);
    }
    expect_nothing_happens();
    clear();
  }

 private:
  std::vector<Mine> mine_;
  std::vector<std::uint64_t> arenas_;
};

TEST_F(GpuGraphs, KernelsOfOneThatIsGoneDoNothing) {
  for (const Kept& what : kernels_of_a_host()) check(what);
}

TEST_F(GpuGraphs, AKernelOnRegisteredMemoryOfOneThatIsGoneDoesNothing) {
  check(kernel_of("direct", 3, {Kernel::direct, 2, 64, 1, true}, 50'000));
}

TEST_F(GpuGraphs, MovesOfOneThatIsGoneDoNothing) { check(moves()); }

TEST_F(GpuGraphs, WhatOneThatIsGoneHadBetweenHostsDoesNothing) {
  for (const Kept& what : kernels_between_hosts()) check(what);
}

}  // namespace
}  // namespace gdrx::gpu
