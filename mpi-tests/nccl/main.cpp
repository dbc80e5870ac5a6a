// SPDX-License-Identifier: Apache-2.0
// nccl_test: NCCL's collectives, one GPU a process by MPI or all GPUs in one process, checked
// element by element. For NCCL over gdrx's plugin and over its own networks, in the same layout.
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "mpi-tests/nccl/cases.hpp"
#include "mpi-tests/nccl/rank_meeting.hpp"

namespace gdrx::bench {
namespace {

constexpr int kFewCpus = 4;

struct Options {
  std::string library, json;
  std::vector<std::string> collectives{"all_reduce"}, types{"float"};
  std::uint64_t least = 8, most = 64 << 20;
  int factor = 4, iterations = 20, warmup = 5;
  int threads = 0;
  bool apart = false;
};

struct Row {
  std::string collective, type;
  std::uint64_t bytes;
  double microseconds, bus;  // the slowest rank's mean; GB/s
  std::uint64_t wrong;
};

struct World {
  Meeting& meeting;
  int rank, ranks;
  Nccl nccl;
  NcclComm comm = nullptr;
  std::byte *in = nullptr, *out = nullptr;
};

std::size_t parts(std::size_t wanted, int ranks) {
  return wanted == kEach ? static_cast<std::size_t>(ranks) : wanted;
}

Result<void> fill(Gpu& gpu, const World& world, const ElementType& type, std::size_t elements) {
  std::vector<std::byte> host(elements * type.width);
  for (std::size_t i = 0; i < elements; ++i) {
    store(type.type, value(world.rank, i), host.data() + i * type.width);
  }
  return gpu.write(world.in, host.data(), host.size());
}

/// What a call does not write is then seen to be wrong.
Result<void> poison(Gpu& gpu, const World& world, std::size_t bytes) {
  const std::vector<std::byte> host(bytes, std::byte{0xd5});
  return gpu.write(world.out, host.data(), host.size());
}

Result<std::uint64_t> wrong(Gpu& gpu, const World& world, const Case& one, const ElementType& type,
                            std::size_t count) {
  const std::size_t elements = count * parts(one.out_parts, world.ranks);
  std::vector<std::byte> host(elements * type.width);
  GDRX_TRY(gpu.read(host.data(), world.out, host.size()));
  std::uint64_t bad = 0;
  std::array<std::byte, 8> right{};
  for (std::size_t i = 0; i < elements; ++i) {
    const std::int64_t number = one.expected(world.rank, world.ranks, count, i);
    if (number == kAnything) continue;
    store(type.type, number, right.data());
    bad += std::equal(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(type.width),
                      host.begin() + static_cast<std::ptrdiff_t>(i * type.width))
               ? 0
               : 1;
  }
  return bad;
}

/// Until the GPU has done all calls. NCCL's kernels wait for a dead peer for ever; what ends the
/// wait is the error of the communicator, which no call on a stream shows.
Result<void> finish(Gpu& gpu, const World& world) {
  while (!GDRX_TRY(gpu.idle())) {
    int failure = 0;
    GDRX_TRY(
        world.nccl.check(world.nccl.async_error(world.comm, &failure), "ncclCommGetAsyncError"));
    GDRX_TRY(world.nccl.check(failure, "a call under way"));
    std::this_thread::yield();
  }
  return {};
}

Result<Row> measure(Gpu& gpu, const World& world, const Case& one, const ElementType& type,
                    std::uint64_t bytes, const Options& options) {
  const bool each = one.in_parts == kEach || one.out_parts == kEach;
  const std::size_t count = std::max<std::size_t>(
      1, bytes / type.width / (each ? static_cast<std::size_t>(world.ranks) : 1));
  GDRX_TRY(fill(gpu, world, type, count * parts(one.in_parts, world.ranks)));
  GDRX_TRY(poison(gpu, world, count * parts(one.out_parts, world.ranks) * type.width));
  const Call call{world.nccl, world.comm, gpu.stream(), world.in,   world.out,
                  count,      type.width, type.type,    world.rank, world.ranks};
  for (int i = 0; i < options.warmup; ++i) GDRX_TRY(one.run(call));
  GDRX_TRY(finish(gpu, world));
  world.meeting.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < options.iterations; ++i) GDRX_TRY(one.run(call));
  GDRX_TRY(finish(gpu, world));
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  const double slowest = world.meeting.most(took.count() / options.iterations);
  const std::uint64_t bad = world.meeting.sum(GDRX_TRY(wrong(gpu, world, one, type, count)));
  const double moved = static_cast<double>(count * type.width) *
                       static_cast<double>(each ? world.ranks : 1) * one.bus_factor(world.ranks);
  return Row{one.name, type.name, bytes, slowest, moved / slowest / 1e3, bad};
}

Result<World> join(Meeting& meeting, const Options& options) {
  World world{meeting, meeting.rank(), meeting.ranks(), {}, nullptr, nullptr, nullptr};
  // NCCL then believes every process to be on a host of its own.
  if (options.apart) setenv("NCCL_HOSTID", fmt::format("host-{}", world.rank).c_str(), 1);
  world.nccl = GDRX_TRY(Nccl::load(options.library));
  return world;
}

Result<void> run(Meeting& meeting, const Options& options, std::vector<Row>& rows) {
  World world = GDRX_TRY(join(meeting, options));
  Gpu gpu = GDRX_TRY(Gpu::open(meeting.local_rank()));
  NcclId id{};
  if (world.rank == 0) GDRX_TRY(world.nccl.check(world.nccl.unique_id(&id), "ncclGetUniqueId"));
  id = meeting.from_first(id);
  GDRX_TRY(world.nccl.check(world.nccl.init_rank(&world.comm, world.ranks, id, world.rank),
                            "ncclCommInitRank"));
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) < kFewCpus) {
    fmt::print(stderr,
               "nccl_test: rank {} may use {} CPUs, on which NCCL's threads take turns: "
               "mpirun --bind-to none\n",
               world.rank, CPU_COUNT(&cpus));
  }
  const std::size_t room = options.most + 64 * static_cast<std::size_t>(world.ranks);
  world.in = GDRX_TRY(gpu.allocate(room));
  world.out = GDRX_TRY(gpu.allocate(room));
  int version = 0;
  (void)world.nccl.version(&version);
  if (world.rank == 0) {
    fmt::print("# NCCL {}, {} ranks, NCCL_NET_PLUGIN={}, NCCL_NET={}\n", version, world.ranks,
               std::getenv("NCCL_NET_PLUGIN") ? std::getenv("NCCL_NET_PLUGIN") : "",
               std::getenv("NCCL_NET") ? std::getenv("NCCL_NET") : "");
    fmt::print("{:>15} {:>9} {:>12} {:>11} {:>10} {:>6}\n", "collective", "type", "bytes", "us",
               "bus GB/s", "wrong");
  }
  for (const Case& one : cases()) {
    if (std::find(options.collectives.begin(), options.collectives.end(), one.name) ==
        options.collectives.end()) {
      continue;
    }
    for (const ElementType& type : element_types()) {
      if (std::find(options.types.begin(), options.types.end(), type.name) == options.types.end()) {
        continue;
      }
      for (std::uint64_t bytes = options.least; bytes <= options.most;
           bytes *= static_cast<std::uint64_t>(options.factor)) {
        const Row row = GDRX_TRY(measure(gpu, world, one, type, bytes, options));
        if (world.rank != 0) continue;
        rows.push_back(row);
        fmt::print("{:>15} {:>9} {:>12} {:>11.1f} {:>10.3f} {:>6}\n", row.collective, row.type,
                   row.bytes, row.microseconds, row.bus, row.wrong);
        std::fflush(stdout);
      }
    }
  }
  return world.nccl.check(world.nccl.destroy(world.comm), "ncclCommDestroy");
}

// Each process for itself: a rank by MPI, or all ranks as threads of it.
Result<void> run_all(const Options& options, std::vector<Row>& rows) {
  if (options.threads > 0) {
    run_in_threads(options.threads, [&](Meeting& place) { return run(place, options, rows); });
    return {};
  }
  MpiMeeting place;
  return run(place, options, rows);
}

Result<void> write_json(const std::string& path, const std::vector<Row>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const Row& row : rows) {
    all.push_back({{"collective", row.collective},
                   {"type", row.type},
                   {"bytes", row.bytes},
                   {"us", row.microseconds},
                   {"bus_gbs", row.bus},
                   {"wrong", row.wrong}});
  }
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) return fail(Errc::system, "writing " + path, errno);
  return {};
}

template <class Known>
CLI::IsMember one_of(const std::vector<Known>& all) {
  std::vector<std::string> names;
  for (const Known& one : all) names.emplace_back(one.name);
  return CLI::IsMember(names);
}

}  // namespace
}  // namespace gdrx::bench

int main(int argc, char** argv) {
  using namespace gdrx::bench;  // NOLINT(google-build-using-namespace): this program's own
  Options options;
  CLI::App app("NCCL's collectives by MPI, one GPU a process, checked element by element");
  app.add_option("-c,--collectives", options.collectives, "which")
      ->delimiter(',')
      ->check(one_of(cases()));
  app.add_option("-t,--types", options.types, "element types")
      ->delimiter(',')
      ->check(one_of(element_types()));
  app.add_option("-b,--min", options.least, "least bytes")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("-e,--max", options.most, "most bytes")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("-f,--factor", options.factor, "between sizes")->check(CLI::Range(2, 1024));
  app.add_option("-n,--iterations", options.iterations, "timed calls")
      ->check(CLI::Range(1, 100000));
  app.add_option("-w,--warmup", options.warmup, "calls before")->check(CLI::Range(0, 100000));
  app.add_flag("--apart", options.apart, "every process is a host of its own to NCCL");
  app.add_option("--threads", options.threads,
                 "so many ranks, each a thread with a GPU, in this one process; no mpirun")
      ->check(CLI::Range(1, 64));
  app.add_option("--nccl", options.library, "NCCL's library; empty: the loader's libnccl.so.2");
  app.add_option("--json", options.json, "also write the rows to this file");
  CLI11_PARSE(app, argc, argv);
  if (options.threads > 0 && options.apart) {
    fmt::print(stderr, "nccl_test: --apart is for processes: threads have one NCCL_HOSTID\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<Row> rows;
  const auto done = run_all(options, rows);
  if (!done) {
    fmt::print(stderr, "nccl_test: rank {}: {}\n", rank, gdrx::describe(done.error()));
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank == 0 && !options.json.empty()) {
    if (const auto written = write_json(options.json, rows); !written) {
      fmt::print(stderr, "nccl_test: {}\n", gdrx::describe(written.error()));
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  MPI_Finalize();
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.wrong == 0; }) ? 0
                                                                                              : 1;
}
