// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/matrix_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>

#include "base/printable.hpp"
#include "tools/cluster/mpi.hpp"
#include "tools/perf/matrix_view.hpp"
#include "tools/version.hpp"

namespace gdrx::tools {
namespace {

constexpr double kPatience = 60;          // for a step, beside what it measures
constexpr double kPatienceOfCount = 500;  // where messages are counted, not seconds
constexpr double kNoProgress = 10;

std::string& last_words() {
  static std::string words;
  return words;
}

// The words are whole and stay as they are while an alarm is set.
void end_in_silence(int) {
  const std::string& words = last_words();
  [[maybe_unused]] const auto written = write(STDERR_FILENO, words.data(), words.size());
  _exit(1);
}

// MPI waits for ever: a step of it that takes longer ends the process.
class Watch {
 public:
  explicit Watch(unsigned seconds) : seconds_(seconds) { std::signal(SIGALRM, end_in_silence); }
  ~Watch() { alarm(0); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  void begin(const std::string& step) const {
    last_words() = fmt::format(
        "gdrx: perf --matrix: {}: the others say nothing for {} s: look for a stopped gdrx or a "
        "host that is gone\n",
        step, seconds_);
    alarm(seconds_);
  }
  void end() const { alarm(0); }

 private:
  unsigned seconds_;
};

// Between what it is made after and what is ended after it.
class LastStep {
 public:
  LastStep(const Watch& watch, std::size_t rank) : watch_(watch), rank_(rank) {}
  ~LastStep() { watch_.begin(fmt::format("process {}, MPI_Finalize", rank_)); }
  LastStep(const LastStep&) = delete;
  LastStep& operator=(const LastStep&) = delete;

 private:
  const Watch& watch_;
  std::size_t rank_;
};

// A pair takes four steps, and its processes may begin late.
unsigned silence_of(double patience) { return static_cast<unsigned>(4 * patience + 360); }

}  // namespace

Result<bool> matrix_by_mpi(const perf::NicPerfOptions& nic, bool rails, bool json,
                           const Config& config) {
  if (!under_mpi()) {
    return fail(Errc::invalid_argument,
                "--matrix: start it with mpirun, one process a host: Open MPI's mpirun -N 1, "
                "MPICH's mpirun -ppn 1 or srun --ntasks-per-node=1");
  }
  perf::MatrixOptions options;
  options.version = version_line();
  options.nic = nic;
  options.nic.patience =
      std::max(nic.iterations > 0 ? kPatienceOfCount : 0, kPatience + nic.duration);
  options.nic.deadline = kNoProgress;
  options.rails = rails;
  const Watch watch(silence_of(options.nic.patience));
  watch.begin("MPI_Init");
  const auto mpi = GDRX_TRY(Mpi::begin("set GDRX_MODULE_PATH to its folder"));
  watch.end();
  const LastStep last(watch, mpi->rank());
  std::size_t gathered = 0;
  const perf::Gather gather = [&](const std::string& mine) {
    constexpr std::size_t kBeforeRounds = 2;  // the key and the hosts
    watch.begin(gathered < kBeforeRounds ? fmt::format("process {}, at the start", mpi->rank())
                                         : fmt::format("process {}, round {}", mpi->rank(),
                                                       gathered + 1 - kBeforeRounds));
    ++gathered;
    auto all = mpi->all_gather(mine);
    watch.end();
    return all;
  };
  if (mpi->rank() == 0) {
    options.progress = [](const std::string& line) { fmt::print(stderr, "{}\n", printable(line)); };
  }
  const auto report =
      GDRX_TRY(perf::measure_matrix_here(mpi->rank(), host_name(), gather, options, config));
  if (mpi->rank() > 0) return true;
  fmt::print("{}", json ? perf::matrix_json(report) : perf::matrix_text(report));
  std::fflush(stdout);
  return std::all_of(report.pairs.begin(), report.pairs.end(),
                     [](const auto& pair) { return pair.problem.empty(); });
}

}  // namespace gdrx::tools
