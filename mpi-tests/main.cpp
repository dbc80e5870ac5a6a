// SPDX-License-Identifier: Apache-2.0
// mpirun -np 16 allreduce_test
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "gdrx/gdrx_mpi.h"
#include "gdrx/output.hpp"
#include "mpi-tests/die.hpp"
#include "mpi-tests/measure.hpp"
#include "mpi-tests/output.hpp"
#include "mpi-tests/report.hpp"

namespace gdrx::bench {
namespace {

// A communicator an algorithm, made when it is first asked for.
class Communicators {
 public:
  Communicators(const Options& options, int rank) : options_(options), rank_(rank) {}
  ~Communicators() {
    for (const auto& [algorithm, comm] : made_) gdrxCommDestroy(comm);
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  gdrxComm_t operator[](const std::string& algorithm) {
    const auto found = made_.find(algorithm);
    if (found != made_.end()) return found->second;
    gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
    config.algorithm = algorithm.c_str();
    if (!options_.transport.empty()) config.transport = options_.transport.c_str();
    config.timeout_seconds = options_.timeout;
    // A rank that waits inside MPI for one that died would wait for ever.
    config.on_error = [](gdrxResult_t, const char* message, void* user) {
      die(*static_cast<int*>(user), message);
    };
    config.on_error_user = &rank_;
    gdrxComm_t comm = nullptr;
    const auto begin = std::chrono::steady_clock::now();
    if (gdrxCommInitMPI(&comm, MPI_COMM_WORLD, &config) != gdrxSuccess) {
      die(rank_, gdrxGetLastError(nullptr));
    }
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    Creation creation{algorithm, spent.count(), std::string(1024, '\0')};
    MPI_Allreduce(MPI_IN_PLACE, &creation.ms, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    gdrxCommDescribe(comm, creation.description.data(), creation.description.size());
    creation.description.resize(creation.description.find('\0'));
    if (rank_ == 0) {
      fmt::print("# communicator made in {:.0f} ms: {}\n", creation.ms, creation.description);
    }
    creations_.push_back(std::move(creation));
    return made_[algorithm] = comm;
  }
  const std::vector<Creation>& creations() const { return creations_; }

 private:
  const Options& options_;
  int rank_;
  std::map<std::string, gdrxComm_t> made_;
  std::vector<Creation> creations_;
};

int count_hosts(int ranks) {
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  if (const char* id = std::getenv("GDRX_HOST_ID")) std::snprintf(name, sizeof name, "%s", id);
  std::vector<char> all(static_cast<std::size_t>(ranks) * sizeof name);
  MPI_Allgather(name, sizeof name, MPI_CHAR, all.data(), sizeof name, MPI_CHAR, MPI_COMM_WORLD);
  std::set<std::string> hosts;
  for (int r = 0; r < ranks; ++r) hosts.insert(&all[static_cast<std::size_t>(r) * sizeof name]);
  return static_cast<int>(hosts.size());
}

// Ranks of this host below this one.
int local_rank() {
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  int rank = 0;
  MPI_Comm_rank(local, &rank);
  MPI_Comm_free(&local);
  return rank;
}

// A GPU for each rank, current before communicators are made: they bind to it.
Gpu open_gpu(const Options& options, int rank, int ranks) {
  Gpu gpu;
  if (!options.cuda) return gpu;
  gpu.ordinal = local_rank();
  auto bench = GpuBench::create(gpu.ordinal);
  if (!bench) {
    // Without a CUDA toolkit blocking calls still run, staged.
    if (options.mode == Mode::blocking) return gpu;
    die(rank, describe(bench.error()));
  }
  gpu.bench = std::move(*bench);
  if (!options.vs_nccl) return gpu;
  auto nccl = Nccl::create(rank, ranks);
  if (!nccl) die(rank, describe(nccl.error()));
  gpu.nccl = std::move(*nccl);
  if (rank == 0) fmt::print("# beside NCCL {}\n", gpu.nccl->version());
  return gpu;
}

// Where memory is promised beyond what there is, only the kernel's killer would say it.
Case make_case(const Options& options, int rank, int ranks, DataType type, ReduceOp op,
               std::uint64_t bytes, Gpu* gpu) {
  const auto host = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                    static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  try {
    if (bytes > host / 3) throw std::bad_alloc();
    return {options, rank, ranks, type, op, bytes, gpu};
  } catch (const std::bad_alloc&) {
    die(rank, fmt::format("no memory for three buffers of {} bytes; the host has {}", bytes, host));
  }
}

std::vector<Row> run_all(const Options& options, Communicators& communicators, int rank, int ranks,
                         Gpu& gpu) {
  std::vector<Row> rows;
  for (const DataType type : options.types) {
    for (const ReduceOp op : options.ops) {
      if (!fits(options, type, op)) continue;
      std::optional<std::uint64_t> before;
      for (const std::uint64_t bytes : options.sizes) {
        const std::uint64_t count = options.sister->elements_of(type, bytes, ranks);
        if (std::exchange(before, count) == count) continue;  // rounded up alike
        Case data = make_case(options, rank, ranks, type, op, bytes, &gpu);
        for (const std::string& algorithm : options.algorithms) {
          gdrxComm_t comm = communicators[algorithm];
          if (options.explain) data.explain(comm);
          for (const bool in_place : {false, true}) {
            if (in_place ? !options.in_place : !options.out_of_place) continue;
            for (const bool registered : {false, true}) {
              // Host memory in one row: then that costs nothing to compare.
              const bool wanted = options.registered ? registered || options.cuda : !registered;
              if (!wanted) continue;
              rows.push_back(data.run(comm, in_place, registered));
              if (rank == 0) print_row(rows.back(), options);
              if (rank == 0 && options.explain) print_measured(rows.back());
            }
          }
        }
      }
    }
  }
  return rows;
}

int run(const Options& options, const std::string& command) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (const std::string why = misfit(*options.sister, ranks, options.root); !why.empty()) {
    if (rank == 0) fmt::print(stderr, "{}: {}\n", options.sister->program, why);
    return 2;
  }
  const int hosts = count_hosts(ranks);
  if (rank == 0) print_head(ranks, hosts, options);
  std::vector<Row> rows;
  Where where;
  where.ranks = ranks;
  where.hosts = hosts;
  {
    Gpu gpu = open_gpu(options, rank, ranks);
    if (gpu.bench) where.gpu = gpu.bench->device_name();
    if (gpu.nccl) where.nccl = gpu.nccl->version();
    Communicators communicators(options, rank);
    rows = run_all(options, communicators, rank, ranks, gpu);
    where.creations = communicators.creations();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  std::uint64_t wrong = 0;
  for (const Row& row : rows) wrong += row.wrong + (row.same_bits.value_or(true) ? 0 : 1);
  if (rank == 0) {
    print_verdict(rows, ranks, options);
    if (!options.json.empty()) {
      if (auto written = write_json(options, command, where, rows); !written) {
        die(rank, describe(written.error()));
      }
    }
  }
  return wrong == 0 ? 0 : 1;
}

// What cannot be printed throws, or is found at the end: both end as a call that failed.
int printed_run(const Options& options, const std::string& command, int rank) {
  try {
    const int status = run(options, command);
    if (auto printed = all_printed(); !printed) die(rank, describe(printed.error()));
    return status;
  } catch (const std::exception& error) {
    die(rank, error.what());
  }
}

}  // namespace
}  // namespace gdrx::bench

int main(int argc, char** argv) {
  const std::string program(gdrx::bench::sister_of(argc > 0 ? argv[0] : "").program);
  std::string command = "mpirun " + program;
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  const auto options = gdrx::bench::parse_options(argc, argv);
  if (options && options->described) return std::fputs(options->help_text.c_str(), stdout) < 0;
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int status = 0;
  if (!options) {
    if (rank == 0) fmt::print(stderr, "{}: {}\n", program, gdrx::describe(options.error()));
    status = 2;
  } else if (options->help) {
    if (rank == 0) std::fputs(options->help_text.c_str(), stdout);
    if (const auto printed = gdrx::all_printed(); !printed) {
      fmt::print(stderr, "{}: {}\n", program, gdrx::describe(printed.error()));
      status = 3;
    }
  } else if (const auto writable = gdrx::bench::can_write(options->json, rank); !writable) {
    if (rank == 0) fmt::print(stderr, "{}: {}\n", program, gdrx::describe(writable.error()));
    status = 2;
  } else {
    status = gdrx::bench::printed_run(*options, command, rank);
  }
  MPI_Finalize();
  return status;
}
