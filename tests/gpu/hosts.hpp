// SPDX-License-Identifier: Apache-2.0
// Ranks of one process, each with a GPU, that believe they are on several hosts.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "collectives/comm/communicator.hpp"
#include "mpi-tests/data.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx::gpu {

/// A communicator, and a thread with a GPU for each of its ranks while it runs.
class Hosts {
 public:
  static constexpr std::uint64_t kBytes = 48 << 20;

  struct Settings {
    std::string transport;
    std::string algorithm = "auto";
    bool pinned = false;  // though the NICs reach the GPUs' memory
    bool flush = false;   // as if the GPU did not order what NICs write
    bool reproducible = false;
    std::string trace{};                         // a file's name
    std::chrono::milliseconds timeout{100'000};  // emulated, under sanitizers
  };

  Hosts(int hosts, int locals, const Settings& settings)
      : Hosts(std::vector<int>(static_cast<std::size_t>(hosts), locals), settings) {}
  /// `ranks`: of each host.
  Hosts(const std::vector<int>& ranks, const Settings& settings)
      : direct_(settings.transport == "verbs" && !settings.pinned) {
    for (std::size_t host = 0; host < ranks.size(); ++host) {
      for (int local = 0; local < ranks[host]; ++local) places_.push_back({host, local});
    }
    comms_.resize(places_.size());
    for_each([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      comms_[at].in = allocate<std::byte>(kBytes + 256);
      comms_[at].out = allocate<std::byte>(kBytes + 256);
      must(cudaStreamCreateWithFlags(&comms_[at].stream, cudaStreamNonBlocking), "stream");
    });
    make(settings);
  }
  /// Their communicator; another one when that has ended.
  void make(const Settings& settings) {
    auto bootstraps = ThreadBootstrap::create_all(size());
    for_each([&](int rank) {
      auto loaded = must(load_config(process_environment()));
      Communicator::Options options;
      options.config = std::move(loaded.config);
      options.config.host_id = "host" + std::to_string(place(rank).host);
      options.config.timeout = settings.timeout;
      options.config.transport = settings.transport;
      options.config.trace = settings.trace;
      options.config.algo = settings.algorithm;
      options.config.gpu_flush = settings.flush;
      options.config.reproducible = settings.reproducible;
      if (settings.pinned) options.config.gpu_direct = GpuDirect::staged;
      options.log = Log(options.config.log_level, stderr_sink());
      const auto at = static_cast<std::size_t>(rank);
      comms_[at].comm = must(Communicator::create(*bootstraps[at], std::move(options)));
    });
  }
  void end(int rank) {
    std::unique_ptr<Communicator>& comm = comms_[static_cast<std::size_t>(rank)].comm;
    (void)comm->drain();
    (void)comm->leave();
    comm.reset();
  }
  /// Without a word to anybody.
  void destroy(int rank) { comms_[static_cast<std::size_t>(rank)].comm.reset(); }
  ~Hosts() {
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      if (member.comm) end(rank);
      cudaFree(member.in);
      cudaFree(member.out);
      cudaStreamDestroy(member.stream);
    });
  }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  int size() const { return static_cast<int>(comms_.size()); }

  /// One call of every rank.
  struct Case {
    DataType type = DataType::float32;
    ReduceOp op = ReduceOp::sum;
    std::uint64_t count = 0;
    bool in_place = false;
    std::uint64_t shift = 0;  // of the buffers from their beginning, bytes
    int round = 0;            // other numbers in each

    std::uint64_t bytes() const { return count * size_of(type); }
  };

  void check(DataType type, ReduceOp op, std::uint64_t count, bool in_place, std::uint64_t shift) {
    const Case what{type, op, count, in_place, shift};
    // In turns that all threads end before the next: what waits for a device would wait for the
    // kernels of ranks that wait for this one.
    prepare(what);
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      auto operation = must(member.comm->post(call(what, rank)));
      must(member.comm->wait(*operation));
      // Not by staging the whole call: then the GPUs' path holds no memory.
      EXPECT_EQ(member.comm->describe().find("GPU memory 0.0 MiB"), std::string::npos);
      EXPECT_EQ(member.comm->last_operation().staged, !direct_);
      const auto info = member.comm->last_operation();
      EXPECT_EQ(info.counters.sent, info.planned.sends * info.counters.slices);
    });
    check_results(what);
  }

  /// An allReduce, the same bits on every rank. `inputs`: one a rank.
  template <class T>
  std::vector<T> reduce(DataType type, ReduceOp op, const std::vector<std::vector<T>>& inputs) {
    const Case what{.type = type, .op = op, .count = inputs[0].size()};
    std::vector<std::vector<T>> all(comms_.size(), std::vector<T>(what.count));
    for_each([&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      Member& member = comms_[at];
      must(cudaMemcpyAsync(member.in, inputs[at].data(), what.bytes(), cudaMemcpyHostToDevice,
                           member.stream),
           "copy");
      must(member.comm->launch(call(what, rank)));
      // A copy to pageable memory would wait for the call, and keep others from the context.
      must(cudaStreamSynchronize(member.stream), "cudaStreamSynchronize");
      must(cudaMemcpyAsync(all[at].data(), member.out, what.bytes(), cudaMemcpyDeviceToHost,
                           member.stream),
           "copy");
      must(cudaStreamSynchronize(member.stream), "cudaStreamSynchronize");
    });
    for (const auto& got : all) {
      EXPECT_EQ(std::memcmp(got.data(), all[0].data(), what.bytes()), 0) << "ranks differ";
    }
    return all[0];
  }

  /// Inputs on their way in every rank's stream, outputs poisoned.
  void prepare(const Case& what) {
    const bench::DataKey key = key_of(what);
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      member.data.resize(what.bytes());
      bench::fill_input(key, rank, member.data.data(), what.count);
      must(cudaMemset(member.out, 0xa5, what.bytes() + what.shift + 64), "memset");
      must(cudaDeviceSynchronize(), "memset");
      // What the stream does before the call has to be seen by it.
      enqueue_delay(static_cast<std::uint64_t>(rank % 3) * 300'000, member.stream);
      std::byte* in = (what.in_place ? member.out : member.in) + what.shift;
      must(cudaMemcpyAsync(in, member.data.data(), what.bytes(), cudaMemcpyHostToDevice,
                           member.stream),
           "copy");
    });
  }
  gdrx::Call call(const Case& what, int rank) const {
    const Member& member = comms_[static_cast<std::size_t>(rank)];
    gdrx::Call call;
    call.collective = Collective::all_reduce;
    call.type = what.type;
    call.op = what.op;
    call.input = (what.in_place ? member.out : member.in) + what.shift;
    call.output = member.out + what.shift;
    call.count = what.count;
    call.stream = member.stream;
    return call;
  }
  /// Nothing was written to any output since prepare().
  void check_untouched(const Case& what) {
    for_each([&](int rank) {
      std::vector<std::byte> got(what.bytes() + what.shift + 64);
      must(cudaMemcpy(got.data(), comms_[static_cast<std::size_t>(rank)].out, got.size(),
                      cudaMemcpyDeviceToHost),
           "copy");
      EXPECT_EQ(got, std::vector<std::byte>(got.size(), std::byte{0xa5})) << "rank " << rank;
    });
  }
  void check_results(const Case& what) {
    std::vector<std::byte> expected(what.bytes());
    bench::fill_expected(key_of(what), expected.data(), 0, what.count);
    std::vector<std::vector<std::byte>> all(comms_.size());
    for_each([&](int rank) {
      std::vector<std::byte>& got = all[static_cast<std::size_t>(rank)];
      got.resize(what.bytes() + what.shift + 64);
      must(cudaMemcpy(got.data(), comms_[static_cast<std::size_t>(rank)].out, got.size(),
                      cudaMemcpyDeviceToHost),
           "copy");
      EXPECT_EQ(bench::count_wrong(got.data() + what.shift, expected.data(), size_of(what.type),
                                   what.count),
                0)
          << to_string(what.type) << ' ' << to_string(what.op) << ", " << what.count
          << " elements, rank " << rank << " of " << size();
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (i >= what.shift && i < what.shift + what.bytes()) continue;
        ASSERT_EQ(got[i], std::byte{0xa5}) << "written outside at " << i;
      }
    });
    for (const auto& got : all) EXPECT_TRUE(got == all[0]) << "ranks have different bits";
  }
  cudaStream_t stream(int rank) const { return comms_[static_cast<std::size_t>(rank)].stream; }
  /// With the rank's GPU current, in a thread for each.
  template <class Body>
  void for_each(Body body) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      // Ranks of a host on GPUs of their own: their kernels wait for each other.
      const int gpu = place(rank).local % gpu_count();
      threads.emplace_back([&body, rank, gpu] {
        must(cudaSetDevice(gpu), "cudaSetDevice");
        must(cudaFree(nullptr), "context");
        body(rank);
      });
    }
  }

  std::string explain_of_gpu_buffers(Bytes bytes) {
    const std::string all = must(comm(0).explain(bytes));
    EXPECT_EQ(all.find("GPU buffers: "), 0U) << all;
    const std::size_t host = all.find("\nhost buffers: ");
    EXPECT_NE(host, std::string::npos) << all;
    return all.substr(0, host);
  }

  Communicator& comm(int rank) { return *comms_[static_cast<std::size_t>(rank)].comm; }
  /// What rank 0 is told when it alone calls.
  std::string call_alone(std::uint64_t count) {
    std::string told;
    for_each([&](int rank) {
      if (rank > 0) return;
      auto operation = must(comms_[0].comm->post(call({.count = count}, 0)));
      const auto ended = comms_[0].comm->wait(*operation);
      told = ended ? "done" : describe(ended.error());
    });
    return told;
  }

  /// reduceScatter, then allGather of its results in place: every rank has the whole result.
  void check_halves(std::uint64_t block) {
    const std::uint64_t count = block * static_cast<std::uint64_t>(size());
    const bench::DataKey key{DataType::float32, ReduceOp::sum, size(), count};
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      member.data.resize(count * 4);
      bench::fill_input(key, rank, member.data.data(), count);
      must(cudaMemcpy(member.in, member.data.data(), count * 4, cudaMemcpyHostToDevice), "copy");
      must(cudaMemset(member.out, 0xa5, count * 4), "memset");
      must(cudaDeviceSynchronize(), "memset");
    });
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      std::byte* own = member.out + static_cast<std::uint64_t>(rank) * block * 4;
      gdrx::Call call;
      call.type = DataType::float32;
      call.count = block;
      call.stream = member.stream;
      call.collective = Collective::reduce_scatter;
      call.input = member.in;
      call.output = own;
      must(member.comm->wait(*must(member.comm->post(call))));
      call.collective = Collective::all_gather;
      call.input = own;
      call.output = member.out;
      must(member.comm->wait(*must(member.comm->post(call))));
      EXPECT_EQ(member.comm->path_name(member.comm->last_operation().path), "gpu");
    });
    std::vector<std::byte> expected(count * 4);
    bench::fill_expected(key, expected.data(), 0, count);
    for_each([&](int rank) {
      std::vector<std::byte> got(count * 4);
      must(cudaMemcpy(got.data(), comms_[static_cast<std::size_t>(rank)].out, got.size(),
                      cudaMemcpyDeviceToHost),
           "copy");
      EXPECT_EQ(bench::count_wrong(got.data(), expected.data(), 4, count), 0);
    });
  }

 private:
  struct Member {
    std::unique_ptr<Communicator> comm;
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    cudaStream_t stream = nullptr;
    std::vector<std::byte> data;
  };
  bench::DataKey key_of(const Case& what) const {
    const auto seed = what.count * 5 + what.shift + static_cast<std::uint64_t>(what.round) * 7919;
    return {what.type, what.op, size(), seed};
  }

  struct Place {
    std::size_t host = 0;
    int local = 0;
  };
  const Place& place(int rank) const { return places_[static_cast<std::size_t>(rank)]; }

  std::vector<Place> places_;
  bool direct_;
  std::vector<Member> comms_;
};

/// "ucx", "tcp", "verbs", or "pinned": verbs, and NICs that do not reach the GPUs' memory.
inline Hosts::Settings settings_of(const std::string& fabric,
                                   const std::string& algorithm = "auto") {
  Hosts::Settings settings;
  settings.transport = fabric == "ucx" || fabric == "tcp" ? fabric : "verbs";
  settings.algorithm = algorithm;
  settings.pinned = fabric == "pinned";
  return settings;
}

/// By fabric.
class GpuHosts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    if (GetParam() == std::string("tcp")) return;
    if (GetParam() != std::string("ucx")) {
      setenv("GDRX_MODULE_PATH", GDRX_SIM_MODULE_PATHS, 1);
    } else {
      unsetenv("GDRX_MODULE_PATH");
    }
  }
};

inline void synchronize(const Hosts& world, int rank) {
  must(cudaStreamSynchronize(world.stream(rank)), "cudaStreamSynchronize");
}

/// What `launch` puts into the rank's stream.
template <class Body>
cudaGraphExec_t capture(Hosts& world, int rank, Body launch) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t made = nullptr;
  const cudaStream_t stream = world.stream(rank);
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  launch();
  must(cudaStreamEndCapture(stream, &graph), "capture");
  must(cudaGraphInstantiate(&made, graph, 0), "instantiate");
  cudaGraphDestroy(graph);
  return made;
}

}  // namespace gdrx::gpu
