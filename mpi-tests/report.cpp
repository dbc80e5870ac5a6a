// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "mpi-tests/machine.hpp"

namespace gdrx::bench {

void print_head(int ranks, int hosts, bool vs_mpi) {
  fmt::print("# gdrx allreduce_test, {} ranks on {} host(s): {}\n", ranks, hosts, machine());
  fmt::print(
      "# time: median and 99th percentile of the slowest rank; algbw = size/time, busbw = algbw x "
      "2(n-1)/n\n");
  fmt::print("#{:>11} {:>11} {:>9} {:>5} {:>17} {:>5} {:>6} {:>11} {:>11} {:>8} {:>8} {:>7}{}\n",
             "size", "count", "type", "op", "algorithm", "via", "place", "p50", "p99", "algbw",
             "busbw", "wrong", vs_mpi ? "     MPI p50  MPI/gdrx" : "");
  fmt::print("#{:>11} {:>11} {:>9} {:>5} {:>17} {:>5} {:>6} {:>11} {:>11} {:>8} {:>8} {:>7}{}\n",
             "(B)", "(elements)", "", "", "", "", "", "(us)", "(us)", "(GB/s)", "(GB/s)", "",
             vs_mpi ? "        (us)" : "");
}

void print_row(const Row& row, bool vs_mpi) {
  fmt::print(
      " {:>11} {:>11} {:>9} {:>5} {:>17} {:>5} {:>6} {:>11.2f} {:>11.2f} {:>8.2f} {:>8.2f} {:>7}",
      row.bytes, row.count, to_string(row.type), to_string(row.op), row.algorithm, row.transport,
      row.in_place ? "in" : "out", row.time.p50, row.time.p99, row.algbw, row.busbw, row.wrong);
  if (row.mpi) {
    fmt::print(" {:>11.2f} {:>9.2f}", row.mpi->p50, row.mpi->p50 / row.time.p50);
  } else if (vs_mpi) {
    fmt::print(" {:>11} {:>9}", "-", "-");
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void print_verdict(const std::vector<Row>& rows, int ranks) {
  std::map<std::string, std::pair<double, int>> logs;  // by algorithm asked for
  double total = 0;
  int compared = 0;
  double least = HUGE_VAL;
  std::uint64_t wrong = 0;
  for (const Row& row : rows) {
    wrong += row.wrong;
    if (!row.mpi) continue;
    const double ratio = row.mpi->p50 / row.time.p50;
    total += std::log(ratio);
    least = std::min(least, ratio);
    ++compared;
  }
  if (compared > 0) {
    fmt::print("# MPI time / gdrx time: geometric mean {:.2f} over {} rows, least {:.2f}\n",
               std::exp(total / compared), compared, least);
  }
  if (wrong == 0) {
    fmt::print("# OK: {} ranks, {} rows, every element of every rank right\n", ranks, rows.size());
  } else {
    fmt::print("# FAILED: {} wrong elements in {} rows\n", wrong, rows.size());
  }
  std::fflush(stdout);
}

Result<void> write_json(const std::string& path, const std::string& command, int ranks, int hosts,
                        const std::vector<Row>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows) {
    nlohmann::json entry{{"ranks", ranks},
                         {"bytes", row.bytes},
                         {"count", row.count},
                         {"type", to_string(row.type)},
                         {"op", to_string(row.op)},
                         {"algorithm", row.algorithm},
                         {"transport", row.transport},
                         {"memory", row.cuda ? "cuda" : "host"},
                         {"mode", "blocking"},
                         {"registered", false},
                         {"hosts", hosts},
                         {"in_place", row.in_place},
                         {"time_us", {{"p50", row.time.p50}, {"p99", row.time.p99}}},
                         {"algbw", row.algbw},
                         {"busbw", row.busbw},
                         {"wrong", row.wrong}};
    if (row.mpi) entry["vs"] = {{"mpi", {{"p50", row.mpi->p50}}}};
    list.push_back(std::move(entry));
  }
  const nlohmann::json all{
      {"machine", machine()}, {"command", command}, {"commit", commit()}, {"rows", list}};
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) return fail(Errc::system, "writing " + path, errno);
  return {};
}

}  // namespace gdrx::bench
