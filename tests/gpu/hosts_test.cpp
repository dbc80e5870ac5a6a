// SPDX-License-Identifier: Apache-2.0
// allReduce of GPU buffers between hosts: ranks of one process, each with a GPU, believe that they
// are on several hosts. Over UCX and over simulated NICs. Skipped without a GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "collectives/comm/communicator.hpp"
#include "mpi-tests/data.hpp"
#include "tests/gpu/delay.hpp"
#include "tests/gpu/ranks.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx::gpu {
namespace {

/// A communicator of `hosts` x `locals` ranks, and a thread with a GPU for each while it runs.
class Hosts {
 public:
  static constexpr std::uint64_t kBytes = 48 << 20;

  struct Settings {
    std::string transport;
    std::string algorithm = "auto";
    bool pinned = false;  // though the NICs reach the GPUs' memory
    bool flush = false;   // as if the GPU did not order what NICs write
    std::chrono::milliseconds timeout{20'000};
  };

  Hosts(int hosts, int locals, const Settings& settings)
      : locals_(locals),
        direct_(settings.transport == "verbs" && !settings.pinned && settings.algorithm == "auto"),
        comms_(static_cast<std::size_t>(hosts * locals)) {
    auto bootstraps = ThreadBootstrap::create_all(hosts * locals);
    for_each([&](int rank) {
      auto loaded = must(load_config(process_environment()));
      Communicator::Options options;
      options.config = std::move(loaded.config);
      options.config.host_id = "host" + std::to_string(rank / locals);
      options.config.timeout = settings.timeout;
      options.config.transport = settings.transport;
      options.config.algo = settings.algorithm;
      options.config.gpu_flush = settings.flush;
      if (settings.pinned) options.config.gpu_direct = GpuDirect::staged;
      options.log = Log(options.config.log_level, stderr_sink());
      const auto at = static_cast<std::size_t>(rank);
      comms_[at].comm = must(Communicator::create(*bootstraps[at], std::move(options)));
      comms_[at].in = allocate<std::byte>(kBytes + 256);
      comms_[at].out = allocate<std::byte>(kBytes + 256);
      must(cudaStreamCreateWithFlags(&comms_[at].stream, cudaStreamNonBlocking), "stream");
    });
  }
  ~Hosts() {
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      (void)member.comm->drain();
      (void)member.comm->leave();
      member.comm.reset();
      cudaFree(member.in);
      cudaFree(member.out);
      cudaStreamDestroy(member.stream);
    });
  }
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  int size() const { return static_cast<int>(comms_.size()); }

  void check(DataType type, ReduceOp op, std::uint64_t count, bool in_place, std::uint64_t shift) {
    const std::uint64_t bytes = count * size_of(type);
    const bench::DataKey key{type, op, size(), count * 5 + shift};
    // In turns that all threads end before the next: what waits for a device would wait for the
    // kernels of ranks that wait for this one.
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      member.data.resize(bytes);
      bench::fill_input(key, rank, member.data.data(), count);
      must(cudaMemset(member.out, 0xa5, bytes + shift + 64), "memset");
      must(cudaDeviceSynchronize(), "memset");
      // What the stream does before the call has to be seen by it.
      enqueue_delay(static_cast<std::uint64_t>(rank % 3) * 300'000, member.stream);
      std::byte* in = (in_place ? member.out : member.in) + shift;
      must(cudaMemcpyAsync(in, member.data.data(), bytes, cudaMemcpyHostToDevice, member.stream),
           "copy");
    });
    for_each([&](int rank) {
      Member& member = comms_[static_cast<std::size_t>(rank)];
      gdrx::Call call;
      call.collective = Collective::all_reduce;
      call.type = type;
      call.op = op;
      call.input = (in_place ? member.out : member.in) + shift;
      call.output = member.out + shift;
      call.count = count;
      call.stream = member.stream;
      auto operation = must(member.comm->post(call));
      must(member.comm->wait(*operation));
      // Not by staging the whole call: then the GPUs' path holds no memory.
      EXPECT_EQ(member.comm->describe().find("GPU memory 0.0 MiB"), std::string::npos);
      EXPECT_EQ(member.comm->last_operation().staged, !direct_);
      const auto info = member.comm->last_operation();
      EXPECT_EQ(info.counters.sent, info.planned.sends * info.counters.slices);
    });
    std::vector<std::byte> expected(bytes);
    bench::fill_expected(key, expected.data(), 0, count);
    std::vector<std::vector<std::byte>> all(comms_.size());
    for_each([&](int rank) {
      std::vector<std::byte>& got = all[static_cast<std::size_t>(rank)];
      got.resize(bytes + shift + 64);
      must(cudaMemcpy(got.data(), comms_[static_cast<std::size_t>(rank)].out, got.size(),
                      cudaMemcpyDeviceToHost),
           "copy");
      EXPECT_EQ(bench::count_wrong(got.data() + shift, expected.data(), size_of(type), count), 0)
          << to_string(type) << ' ' << to_string(op) << ", " << count << " elements, rank " << rank
          << " of " << size();
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (i >= shift && i < shift + bytes) continue;
        ASSERT_EQ(got[i], std::byte{0xa5}) << "written outside at " << i;
      }
    });
    for (const auto& got : all) EXPECT_TRUE(got == all[0]) << "ranks have different bits";
  }

  Communicator& comm(int rank) { return *comms_[static_cast<std::size_t>(rank)].comm; }
  /// What rank 0 is told when it alone calls.
  std::string call_alone(std::uint64_t count) {
    std::string told;
    for_each([&](int rank) {
      if (rank > 0) return;
      gdrx::Call call;
      call.collective = Collective::all_reduce;
      call.type = DataType::float32;
      call.input = comms_[0].in;
      call.output = comms_[0].out;
      call.count = count;
      call.stream = comms_[0].stream;
      auto operation = must(comms_[0].comm->post(call));
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
  template <class Body>
  void for_each(Body body) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      // Ranks of a host on GPUs of their own: their kernels wait for each other.
      const int gpu = rank % locals_ % gpu_count();
      threads.emplace_back([&body, rank, gpu] {
        must(cudaSetDevice(gpu), "cudaSetDevice");
        must(cudaFree(nullptr), "context");
        body(rank);
      });
    }
  }

  int locals_;
  bool direct_;
  std::vector<Member> comms_;
};

class GpuHosts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU on this machine";
    if (GetParam() != std::string("ucx")) {
      setenv("GDRX_MODULE_PATH", GDRX_SIM_MODULE_PATHS, 1);
    } else {
      unsetenv("GDRX_MODULE_PATH");
    }
  }
};

/// "ucx", "verbs", or "pinned": verbs, and NICs that do not reach the GPUs' memory.
Hosts::Settings settings_of(const std::string& fabric, const std::string& algorithm = "auto") {
  Hosts::Settings settings;
  settings.transport = fabric == "ucx" ? "ucx" : "verbs";
  settings.algorithm = algorithm;
  settings.pinned = fabric == "pinned";
  return settings;
}

void check_sizes(int hosts, int locals, const char* fabric) {
  if (locals > gpu_count()) GTEST_SKIP() << "needs " << locals << " GPUs";
  Hosts world(hosts, locals, settings_of(fabric));
  for (const std::uint64_t count : {1, 5, 1021, 70000, 1000003, 9000001}) {
    world.check(DataType::float32, ReduceOp::sum, count, false, 0);
  }
  world.check(DataType::float16, ReduceOp::sum, 300001, true, 2);
  world.check(DataType::uint8, ReduceOp::max, 100003, false, 5);
}

TEST_P(GpuHosts, TwoOfOneGpu) { check_sizes(2, 1, GetParam()); }
TEST_P(GpuHosts, ThreeOfOneGpu) { check_sizes(3, 1, GetParam()); }
TEST_P(GpuHosts, TwoOfTwoGpus) { check_sizes(2, 2, GetParam()); }
TEST_P(GpuHosts, TwoOfFourGpus) { check_sizes(2, 4, GetParam()); }

TEST_P(GpuHosts, EveryTypeAndOperatorIsRight) {
  Hosts world(2, std::min(2, gpu_count()), settings_of(GetParam()));
  for (std::size_t type = 0; type < kDataTypeCount; ++type) {
    for (std::size_t op = 0; op < kReduceOpCount; ++op) {
      world.check(static_cast<DataType>(type), static_cast<ReduceOp>(op), 40009, op % 2 == 0, 0);
    }
  }
}

TEST_P(GpuHosts, RingTreeAndHalvingDoublingBetweenHosts) {
  for (const char* algorithm : {"ring", "tree", "halving-doubling"}) {
    Hosts world(4, 1, settings_of(GetParam(), algorithm));
    world.check(DataType::bfloat16, ReduceOp::avg, 2000003, false, 0);
    world.check(DataType::float32, ReduceOp::sum, 3, false, 0);
  }
}

TEST_P(GpuHosts, ReduceScatterAndAllGatherOfOneHostRunOnItsGpus) {
  if (GetParam() != std::string("ucx")) GTEST_SKIP() << "one host needs no fabric";
  Hosts world(1, gpu_count(), {"auto"});
  for (const std::uint64_t block : {1, 1000, 777777}) world.check_halves(block);
}

TEST_P(GpuHosts, ExplainSaysWhatCarriesTheGpusMemory) {
  Hosts world(2, 1, settings_of(GetParam()));
  const std::string said = must(world.comm(0).explain(1 << 20));
  const bool direct = GetParam() == std::string("verbs");
  EXPECT_EQ(said.find("GPUDirect RDMA") != std::string::npos, direct) << said;
  EXPECT_EQ(said.find("pinned memory") != std::string::npos, !direct) << said;
}

// The GPUs' path of 16 MiB, and with NICs that write GPU memory at most 16 MiB more.
TEST_P(GpuHosts, HoldNoMoreGpuMemoryThanIsSaid) {
  for (const int hosts : {2, 3}) {
    Hosts world(hosts, 1, settings_of(GetParam()));
    const std::string said = world.comm(0).describe();
    const std::size_t at = said.find("GPU memory ");
    ASSERT_NE(at, std::string::npos) << said;
    const double mib = std::atof(said.c_str() + at + 11);
    const bool direct = GetParam() == std::string("verbs");
    EXPECT_GE(mib, direct ? 17 : 16) << said;
    EXPECT_LE(mib, direct ? 32 : 16) << said;
  }
}

TEST_P(GpuHosts, ARankThatDoesNotCallIsNamed) {
  Hosts::Settings settings = settings_of(GetParam());
  settings.timeout = std::chrono::milliseconds(1500);
  Hosts world(2, 1, settings);
  const std::string told = world.call_alone(3'000'000);
  EXPECT_NE(told.find("rank 1"), std::string::npos) << told;
}

// NICs hold back what they have written until a read pushes it: without flushes sums are wrong.
TEST_P(GpuHosts, WaitForWhatNicsHoldBack) {
  if (GetParam() != std::string("verbs")) GTEST_SKIP() << "no NIC writes the GPU's memory";
  Hosts::Settings settings = settings_of(GetParam());
  settings.flush = true;
  Hosts world(2, 1, settings);
  const std::string path = std::string(GDRX_SIM_MODULE_FOLDER) + "/libgdrx-fabric-verbs.so";
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(module, nullptr);
  auto* hold = reinterpret_cast<void (*)(int)>(dlsym(module, "gdrx_sim_hold_gpu_writes"));
  ASSERT_NE(hold, nullptr);
  hold(1);
  for (const std::uint64_t count : {1, 1021, 1000003, 6000001}) {
    world.check(DataType::float32, ReduceOp::sum, count, false, 0);
  }
  hold(0);
  dlclose(module);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, GpuHosts, testing::Values("ucx", "verbs", "pinned"));

}  // namespace
}  // namespace gdrx::gpu
