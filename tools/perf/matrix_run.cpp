// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/matrix_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "base/printable.hpp"
#include "tools/cluster/mpi.hpp"
#include "tools/perf/matrix_view.hpp"

namespace gdrx::tools {
namespace {

constexpr double kPatience = 60;          // for a step, beside what it measures
constexpr double kPatienceOfCount = 500;  // where messages are counted, not seconds
constexpr double kNoProgress = 10;

void end_in_silence(int) {
  constexpr std::string_view kWords =
      "gdrx: perf --matrix: the other processes say nothing any more\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kWords.data(), kWords.size());
  _exit(1);
}

}  // namespace

Result<MatrixAnswer> matrix_by_mpi(const perf::NicPerfOptions& nic, bool rails, bool json,
                                   const Config& config) {
  if (!under_mpi()) {
    return fail(
        Errc::invalid_argument,
        "--matrix: start it with mpirun, one process a host: mpirun -N 1 gdrx perf --matrix");
  }
  const auto mpi = GDRX_TRY(Mpi::begin());
  std::signal(SIGALRM, end_in_silence);
  const double patience = nic.iterations > 0 ? kPatienceOfCount : kPatience + nic.duration;
  // A pair takes four steps, and its processes may begin late.
  const auto silence = static_cast<unsigned>(4 * patience + 360);
  const perf::Gather gather = [&](const std::string& mine) {
    alarm(silence);  // MPI waits for ever
    auto all = mpi->all_gather(mine);
    alarm(0);
    return all;
  };
  perf::MatrixOptions options;
  options.nic = nic;
  options.nic.patience = patience;
  options.nic.deadline = kNoProgress;
  options.rails = rails;
  if (mpi->rank() == 0) {
    options.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", printable(line)); };
  }
  const auto report =
      GDRX_TRY(perf::measure_matrix_here(mpi->rank(), host_name(), gather, options, config));
  if (mpi->rank() > 0) return MatrixAnswer{};
  const bool failed = std::any_of(report.pairs.begin(), report.pairs.end(),
                                  [](const auto& pair) { return !pair.problem.empty(); });
  return MatrixAnswer{json ? perf::matrix_json(report) : perf::matrix_text(report), failed};
}

}  // namespace gdrx::tools
