// SPDX-License-Identifier: Apache-2.0
// mpirun -np 2 --map-by node net_perf
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "mpi-tests/net_perf/measure.hpp"
#include "mpi-tests/net_perf/netns.hpp"
#include "mpi-tests/output.hpp"
#include "mpi-tests/provenance.hpp"

namespace gdrx::net_perf {
namespace {

constexpr double kMiB = 1 << 20;

void print_head(const Pair& pair, const char* test, const Options& options) {
  fmt::print("# net_perf {}: {}{}; {}\n", test, pair.describe(),
             options.bidirectional ? ", both ways" : "", bench::machine());
}

nlohmann::json latency_row(std::uint64_t bytes, int iterations, const Latency& row) {
  fmt::print(" {:>9} {:>11} {:>12.2f} {:>15.2f} {:>12.2f} {:>12.2f}\n", bytes, iterations, row.min,
             row.typical, row.average, row.p99);
  return {{"test", "write_lat"},         {"bytes", bytes},
          {"iterations", iterations},    {"t_min_us", row.min},
          {"t_typical_us", row.typical}, {"t_avg_us", row.average},
          {"t_p99_us", row.p99}};
}

Result<void> run_latency(Pair& pair, const Options& options, nlohmann::json& rows) {
  if (pair.rank() == 0) {
    print_head(pair, "write_lat", options);
    fmt::print("#{:>9} {:>11} {:>12} {:>15} {:>12} {:>12}\n", "bytes", "iterations", "t_min[us]",
               "t_typical[us]", "t_avg[us]", "99%[us]");
  }
  const int iterations = options.iterations > 0 ? options.iterations : 1000;
  for (const std::uint64_t bytes : options.sizes) {
    const Latency row = GDRX_TRY(measure_latency(pair, bytes, iterations, options.warmup));
    if (pair.rank() == 0) rows.push_back(latency_row(bytes, iterations, row));
    std::fflush(stdout);
  }
  return {};
}

nlohmann::json bandwidth_row(std::uint64_t bytes, const Bandwidth& row, std::uint64_t all,
                             std::uint64_t wrong) {
  const double speed = static_cast<double>(all * bytes) / row.seconds / kMiB;
  const double rate = static_cast<double>(all) / row.seconds / 1e6;
  fmt::print(" {:>9} {:>11} {:>19.2f} {:>13.6f} {:>10.2f} {:>7}\n", bytes, all, speed, rate,
             row.seconds, wrong);
  return {{"test", "write_bw"}, {"bytes", bytes},         {"iterations", all},
          {"MiB_s", speed},     {"seconds", row.seconds}, {"wrong", wrong}};
}

Result<std::uint64_t> run_bandwidth(Pair& pair, const Options& options, nlohmann::json& rows) {
  if (pair.rank() == 0) {
    print_head(pair, "write_bw", options);
    fmt::print("#{:>9} {:>11} {:>19} {:>13} {:>10} {:>7}\n", "bytes", "iterations",
               "BW average[MiB/s]", "MsgRate[Mpps]", "seconds", "wrong");
  }
  const auto messages =
      static_cast<std::uint64_t>(options.iterations > 0 ? options.iterations : 5000);
  std::uint64_t all_wrong = 0;
  for (const std::uint64_t bytes : options.sizes) {
    const auto warmup = static_cast<std::uint64_t>(std::max(1, options.warmup));
    GDRX_TRY(measure_bandwidth(pair, options, bytes, warmup, 0));
    const Bandwidth row =
        GDRX_TRY(measure_bandwidth(pair, options, bytes, messages, options.duration));
    std::uint64_t mine[2] = {row.received, row.wrong};
    std::uint64_t sum[2] = {};
    MPI_Allreduce(mine, sum, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    all_wrong += sum[1];
    if (pair.rank() == 0) rows.push_back(bandwidth_row(bytes, row, sum[0], sum[1]));
    std::fflush(stdout);
  }
  return all_wrong;
}

Result<std::uint64_t> run(const Options& options, int rank, const std::string& command) {
  std::uint64_t area = 0;
  for (const std::uint64_t bytes : options.sizes) {
    area = std::max(area, slots_of(options, bytes) * bytes);
  }
  if (!options.netns.empty()) {
    GDRX_TRY(enter_netns(options.netns[static_cast<std::size_t>(rank)]));
  }
  const auto pair = GDRX_TRY(Pair::open(options, rank, area));
  nlohmann::json rows = nlohmann::json::array();
  std::uint64_t wrong = 0;
  if (options.latency) GDRX_TRY(run_latency(*pair, options, rows));
  if (options.bandwidth) wrong = GDRX_TRY(run_bandwidth(*pair, options, rows));
  if (rank != 0 || options.json.empty()) return wrong;
  std::ofstream file(options.json);
  file << nlohmann::json{{"machine", bench::machine()},
                         {"command", command},
                         {"commit", bench::commit()},
                         {"via", pair->describe()},
                         {"rows", rows}}
              .dump(1)
       << '\n';
  file.close();
  if (!file) return fail(Errc::system, "writing " + options.json, errno);
  return wrong;
}

}  // namespace
}  // namespace gdrx::net_perf

int main(int argc, char** argv) {
  std::string command = "mpirun -np 2 --map-by node net_perf";
  for (int i = 1; i < argc; ++i) command += fmt::format(" {}", argv[i]);
  auto options = gdrx::net_perf::parse_options(argc, argv);
  if (options && options->described) return std::fputs(options->help_text.c_str(), stdout) < 0;
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (options && !options->help && ranks != 2) {
    options = gdrx::fail(gdrx::Errc::invalid_argument, "two ranks: mpirun -np 2 --map-by node");
  }
  if (options && !options->help) {
    if (const auto writable = gdrx::bench::can_write(options->json, rank); !writable) {
      options = tl::unexpected(writable.error());
    }
  }
  int status = 0;
  if (!options) {
    if (rank == 0) fmt::print(stderr, "net_perf: {}\n", gdrx::describe(options.error()));
    status = 2;
  } else if (options->help) {
    if (rank == 0) fmt::print("{}", options->help_text);
  } else if (const auto wrong = gdrx::net_perf::run(*options, rank, command); !wrong) {
    fmt::print(stderr, "net_perf: {}\n", gdrx::describe(wrong.error()));
    std::fflush(stdout);
    std::_Exit(3);  // the other rank may be gone: MPI_Finalize would wait for it
  } else {
    status = *wrong == 0 ? 0 : 1;
  }
  MPI_Finalize();
  return status;
}
