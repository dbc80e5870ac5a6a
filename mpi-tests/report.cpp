// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "mpi-tests/provenance.hpp"

namespace gdrx::bench {
namespace {

const char* mode_name(Mode mode) {
  return mode == Mode::graph ? "graph" : mode == Mode::stream ? "stream" : "blocking";
}

}  // namespace

void print_head(int ranks, int hosts, const Options& options) {
  const Sister& sister = *options.sister;
  fmt::print("# gdrx {}, {} ranks on {} host(s): {}\n", sister.program, ranks, hosts, machine());
  fmt::print(
      "# time: median and 99th percentile of the slowest rank; algbw = size/time, busbw = algbw x "
      "{:.4g}\n",
      sister.bus_factor(ranks));
  if (options.mode != Mode::blocking) {
    fmt::print(
        "# {}: {} calls a sample, the last output checked; bits: whether repeats give the same\n",
        options.mode == Mode::graph ? "graph replay" : "calls on a stream",
        GpuBench::kCallsOfSample);
  }
  const bool host = options.mode == Mode::stream;
  const bool on_gpu = options.mode != Mode::blocking;
  const char* line =
      "#{:>11} {:>11} {:>9} {:>5} {:>17} {:>5} {:>6} {:>4} {:>11} {:>11} {:>8} {:>8} {:>7}";
  fmt::print(fmt::runtime(line), "size", "count", "type", "op", "algorithm", "via", "place", "reg",
             "p50", "p99", "algbw", "busbw", "wrong");
  fmt::print("{}{}{}{}\n", on_gpu ? "  bits" : "", host ? "  host" : "",
             options.vs_mpi ? "     MPI p50  MPI/gdrx" : "",
             options.vs_nccl ? "        NCCL  registered  NCCL/gdrx" : "");
  fmt::print(fmt::runtime(line), "(B)", "(elements)", "", "", "", "", "", "", "(us)", "(us)",
             "(GB/s)", "(GB/s)", "");
  fmt::print("{}{}{}{}\n", on_gpu ? "      " : "", host ? "  (us)" : "",
             options.vs_mpi ? "        (us)" : "",
             options.vs_nccl ? "        (us)        (us)" : "");
}

namespace {

std::string_view registered_word(const Row& row) {
  if (row.registered) return "yes";
  return row.buffers_registered ? "idle" : "no";  // another way was thought to be faster
}

/// Whether repeats of a sum that depends on the order gave the same bits.
std::string_view bits_word(const Row& row) {
  if (!row.same_bits) return "-";
  return *row.same_bits ? "same" : "DIFF";
}

}  // namespace

void print_row(const Row& row, const Options& options) {
  fmt::print(
      " {:>11} {:>11} {:>9} {:>5} {:>17} {:>5} {:>6} {:>4} {:>11.2f} {:>11.2f} {:>8.2f} {:>8.2f} "
      "{:>7}",
      row.bytes, row.count, to_string(row.type),
      options.sister->reduces ? to_string(row.op) : "none", row.algorithm, row.transport,
      row.in_place ? "in" : "out", registered_word(row), row.time.p50, row.time.p99, row.algbw,
      row.busbw, row.wrong);
  if (row.mode != Mode::blocking) fmt::print("  {:>4}", bits_word(row));
  if (row.mode == Mode::stream) fmt::print(" {:>5.2f}", row.host_us);
  if (row.mpi) {
    fmt::print(" {:>11.2f} {:>9.2f}", row.mpi->p50, row.mpi->p50 / row.time.p50);
  } else if (options.vs_mpi) {
    fmt::print(" {:>11} {:>9}", "-", "-");
  }
  if (row.nccl) {
    fmt::print(" {:>11.2f} {:>11} {:>10.2f}", row.nccl->p50,
               row.nccl_registered ? fmt::format("{:.2f}", row.nccl_registered->p50) : "-",
               *row.nccl_us() / row.time.p50);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void print_measured(const Row& row) {
  if (row.predicted_us <= 0) return;
  fmt::print("    {} over {}, {}: measured {:.1f} us, predicted {:.1f} us ({:.1f}x)\n",
             row.algorithm, row.transport, row.in_place ? "in place" : "out of place", row.time.p50,
             row.predicted_us, row.time.p50 / row.predicted_us);
}

namespace {

void print_shortened(const std::vector<Row>& rows, const Options& options) {
  const auto shortened = std::count_if(rows.begin(), rows.end(), [&](const Row& row) {
    return (row.calls > 0 && row.calls < options.iterations) ||
           (row.mpi && row.mpi_calls < options.iterations);
  });
  if (shortened == 0) return;
  fmt::print("# {} rows of slow calls have fewer than {} timed calls; -n sets how many\n",
             shortened, options.iterations);
}

}  // namespace

void print_verdict(const std::vector<Row>& rows, int ranks, const Options& options) {
  print_shortened(rows, options);
  double total = 0;
  int compared = 0;
  double least = HUGE_VAL;
  std::uint64_t wrong = 0;
  bool same_bits = true;
  std::uint64_t nccl_wrong = 0;
  const char* rival = "MPI";
  for (const Row& row : rows) {
    wrong += row.wrong;
    same_bits = same_bits && row.same_bits.value_or(true);
    nccl_wrong += row.nccl_wrong;
    if (!row.mpi && !row.nccl) continue;
    if (row.nccl) rival = "NCCL";
    const double ratio = (row.mpi ? row.mpi->p50 : *row.nccl_us()) / row.time.p50;
    total += std::log(ratio);
    least = std::min(least, ratio);
    ++compared;
  }
  if (compared > 0) {
    fmt::print("# {} time / gdrx time: geometric mean {:.2f} over {} rows, least {:.2f}\n", rival,
               std::exp(total / compared), compared, least);
  }
  if (!same_bits) fmt::print("# FAILED: some sums of random numbers differed between repeats\n");
  if (nccl_wrong > 0) fmt::print("# NCCL: {} wrong elements\n", nccl_wrong);
  if (wrong > 0) {
    fmt::print("# FAILED: {} wrong elements in {} rows\n", wrong, rows.size());
  } else if (same_bits) {
    fmt::print("# OK: {} ranks, {} rows, every element of every rank right\n", ranks, rows.size());
  }
  std::fflush(stdout);
}

Result<void> write_json(const Options& options, const std::string& command, const Where& where,
                        const std::vector<Row>& rows) {
  const std::string& path = options.json;
  const Sister& sister = *options.sister;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json entry{{"collective", sister.call},
                                 {"ranks", where.ranks},
                                 {"bytes", row.bytes},
                                 {"count", row.count},
                                 {"type", to_string(row.type)},
                                 {"op", sister.reduces ? to_string(row.op) : "none"},
                                 {"algorithm", row.algorithm},
                                 {"transport", row.transport},
                                 {"memory", row.cuda ? "cuda" : "host"},
                                 {"mode", mode_name(row.mode)},
                                 {"registered", row.registered},
                                 {"buffers_registered", row.buffers_registered},
                                 {"hosts", where.hosts},
                                 {"in_place", row.in_place},
                                 {"time_us", {{"p50", row.time.p50}, {"p99", row.time.p99}}},
                                 {"algbw", row.algbw},
                                 {"busbw", row.busbw},
                                 {"wrong", row.wrong}};
    if (row.calls > 0) entry["timed_calls"] = row.calls;
    if (row.mpi) {
      entry["vs"] = {{"mpi", {{"p50", row.mpi->p50}, {"timed_calls", row.mpi_calls}}}};
    }
    if (row.mode == Mode::stream) entry["host_us"] = row.host_us;
    if (row.same_bits) entry["same_bits"] = *row.same_bits;
    if (row.nccl) {
      entry["vs"]["nccl"] = {{"p50", row.nccl->p50}, {"p99", row.nccl->p99}};
      if (row.mode == Mode::stream) entry["vs"]["nccl"]["host_us"] = row.nccl_host_us;
      entry["vs"]["nccl"]["wrong"] = row.nccl_wrong;
    }
    if (row.nccl_registered) {
      entry["vs"]["nccl_registered"] = {{"p50", row.nccl_registered->p50},
                                        {"p99", row.nccl_registered->p99}};
    }
    list.push_back(std::move(entry));
  }
  nlohmann::ordered_json communicators = nlohmann::ordered_json::array();
  for (const Creation& creation : where.creations) {
    communicators.push_back({{"algorithm", creation.algorithm},
                             {"made_ms", creation.ms},
                             {"description", creation.description}});
  }
  nlohmann::ordered_json all{{"machine", machine() + (where.gpu.empty() ? "" : ", " + where.gpu)},
                             {"gpu", where.gpu},
                             {"command", command},
                             {"commit", commit()},
                             {"communicators", communicators},
                             {"rows", list}};
  if (!where.nccl.empty()) all["nccl"] = where.nccl;
  std::ofstream file(path);
  file << all.dump(1) << '\n';
  file.close();
  if (!file) return fail(Errc::system, "writing " + path, errno);
  return {};
}

}  // namespace gdrx::bench
