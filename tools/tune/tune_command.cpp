// SPDX-License-Identifier: Apache-2.0
// gdrx tune: runs allreduce_test under mpirun for every way and writes what it measured.
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "gdrx/output.hpp"
#include "tools/commands.hpp"
#include "tools/describe.hpp"
#include "tools/mpirun/mpirun_command.hpp"
#include "tools/support.hpp"
#include "tools/tune/rows.hpp"
#include "tools/tune/runs.hpp"
#include "tools/units.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kTuneExamples =
    "Examples:\n"
    "  gdrx tune -o host.json                 every algorithm and transport, 2, 4, ... ranks\n"
    "  GDRX_TUNE_FILE=host.json mpirun ...    and then the tuner chooses by it\n"
    "  gdrx tune --ranks 2,4 -b 4 -e 64M -f 2 --iters 50 -o host.json\n"
    "  gdrx tune --memory cuda -o gpu.json    the GPU kernels, a rank a GPU\n"
    "  gdrx tune --show host.json             the best way of each size in a table\n"
    "  gdrx tune --mpi --ranks 2,8 -o mpi.txt where it beats the MPI (GDRX_MPI_TABLE)\n"
    "It measures this host as it is: nothing else should run. mpirun, allreduce_test and their\n"
    "environment are those of env.sh. Exit status: 0, 1 if a run fails, 2 for bad usage.\n";

constexpr const char* kHostEnd = "16M";
constexpr const char* kGpuEnd = "256M";
constexpr double kHostFactor = 4;
constexpr double kGpuFactor = 2;  // a kernel's time has a kink where its tiles become several

struct TuneOptions {
  std::string ranks;
  std::string begin = "4";
  std::string end;    // empty: kHostEnd or kGpuEnd
  double factor = 0;  // 0: kHostFactor or kGpuFactor
  std::string transports = "auto";
  std::string memory;
  std::string mpirun = "mpirun";
  int iterations = 20;
  std::string output = "gdrx-tune.json";
  std::string show;
  bool mpi = false;
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int gpus() {
  int count = 0;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", count))) ++count;
  return count;
}

std::vector<int> ranks_of(const TuneOptions& options, bool cuda) {
  std::vector<int> all;
  if (options.ranks.empty()) {
    const int most = cuda ? gpus() : std::max(2, usable_cpus());
    for (int ranks = 2; ranks <= most; ranks += cuda ? 1 : ranks) all.push_back(ranks);
    return all;
  }
  for (const std::string& word : split(options.ranks, ',')) {
    const double ranks = value_or_fail(parse_positive("--ranks", word));
    if (ranks != static_cast<int>(ranks) || ranks > 4096) {
      throw Failure{kBadUsage, "--ranks takes whole numbers from 1 to 4096, not '" + word + "'"};
    }
    all.push_back(static_cast<int>(ranks));
  }
  return all;
}

double factor_of(const TuneOptions& options, bool cuda) {
  if (options.factor > 0) return options.factor;
  return cuda ? kGpuFactor : kHostFactor;
}

std::string end_of(const TuneOptions& options, bool cuda) {
  if (!options.end.empty()) return options.end;
  return cuda ? kGpuEnd : kHostEnd;
}

// The one of this build or this installation, before any other.
std::string program_of_gdrx(const char* name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = self.parent_path() / name;
  return !error && std::filesystem::exists(beside) ? beside.string() : name;
}

/// A name in the temporary folder that is removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() : name_((std::filesystem::temp_directory_path() / "gdrx-tune-XXXXXX").string()) {
    const int made = mkstemp(name_.data());
    if (made < 0) throw Failure{kFailed, describe({Errc::system, "create " + name_, errno})};
    close(made);
  }
  ~TemporaryFile() { std::remove(name_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

// What it prints on stderr stays to be seen; its table is not wanted.
void run_program(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    throw Failure{kFailed, describe({Errc::system, "starting " + words[0], error})};
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  throw Failure{kFailed,
                fmt::format("'{}' failed with status {}", fmt::join(words, " "),
                            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status))};
}

/// `way`: what allreduce_test is told of it.
void measure(const TuneOptions& options, int ranks, const RouteRow& route, const Words& way,
             tune::Table& table) {
  const bool cuda = is_of_gpus(route.route);
  const TemporaryFile rows;
  std::vector<std::string> words = split(options.mpirun, ' ');
  const std::vector<std::string> more{"-np",
                                      std::to_string(ranks),
                                      program_of_gdrx("allreduce_test"),
                                      "-b",
                                      options.begin,
                                      "-e",
                                      end_of(options, cuda),
                                      "-f",
                                      fmt::format("{:g}", factor_of(options, cuda)),
                                      "-n",
                                      std::to_string(options.iterations),
                                      "--out-of-place",
                                      "--json",
                                      rows.name()};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), way.begin(), way.end());
  fmt::print("# route {}: {}\n", route.name, fmt::join(words, " "));
  std::fflush(stdout);
  run_program(words);
  const std::string json = value_or_fail(read_input(rows.name(), std::size_t{64} << 20), kFailed);
  value_or_fail(add_rows(json, table), kFailed);
  if (cuda) table.platform.gpu = gpu_of(json);
}

// For programs of MPI: each collective beside the MPI's own.
void measure_mpi(const TuneOptions& options) {
  value_or_fail(check_output(options.output));
  value_or_fail(write_output(options.output, "# ranks, collective, least and most bytes of it\n"),
                kFailed);
  setenv("GDRX_MPI", "all", 1);
  unsetenv("GDRX_MPI_TABLE");  // it may be the file that is written
  const Family* const family = family_of_launcher(on_path("mpirun"));
  const bool open_mpi = family == nullptr || family->option == "-x";
  for (const int ranks : ranks_of(options, false)) {
    std::vector<std::string> words{program_of_gdrx("gdrx"), "mpirun"};
    if (open_mpi) words.emplace_back("--oversubscribe");
    words.insert(words.end(),
                 {"-np", std::to_string(ranks),
                  program_of_gdrx(open_mpi ? "mpi_beside" : "mpich_beside"), options.output});
    fmt::print("# {}\n", fmt::join(words, " "));
    std::fflush(stdout);
    run_program(words);
  }
  fmt::print("{}# written to {}: GDRX_MPI_TABLE={} makes gdrx mpirun take calls by it\n",
             value_or_fail(read_input(options.output, std::size_t{1} << 20), kFailed),
             options.output, options.output);
}

void run(const TuneOptions& options) {
  if (options.mpi) return measure_mpi(options);
  if (!options.show.empty()) {
    fmt::print("{}", to_text(value_or_fail(tune::load(options.show), kFailed).table));
    return;
  }
  const Bytes begin = value_or_fail(parse_size("-b", options.begin));
  const Bytes end = value_or_fail(parse_size("-e", end_of(options, false)));
  if (begin > end) throw Failure{kBadUsage, "-b is greater than -e"};
  const bool both = options.memory.empty();
  if (options.memory == "cuda" && gpus() == 0) {
    throw Failure{kFailed, "--memory cuda: there is no GPU here (no /dev/nvidia0)"};
  }
  value_or_fail(check_output(options.output));
  tune::Table table{{tune::cpu_model(), usable_cpus(), {}}, {}};
  const bool hosts = both || options.memory == "host";
  const bool cuda = options.memory == "cuda" || (both && gpus() > 1);
  const std::vector<std::string> transports = split(options.transports, ',');
  for (const RouteRow& row : kRoutes) {
    const std::vector<Words> runs = runs_of(row.route, transports);
    const bool of_gpus = is_of_gpus(row.route);
    if (runs.empty() || !(of_gpus ? cuda : hosts)) continue;
    for (const int ranks : ranks_of(options, of_gpus)) {
      for (const Words& way : runs) measure(options, ranks, row, way, table);
    }
  }
  if (table.curves.empty())
    throw Failure{kFailed, "nothing was measured: --ranks says with how many"};
  // The times took minutes: they are seen whatever becomes of the file.
  fmt::print("{}", to_text(table));
  std::fflush(stdout);
  // What is written can be read: the reader is stricter than any file system.
  const std::string text = tune::to_json(table);
  value_or_fail(tune::from_json(text), kFailed);
  value_or_fail(write_output(options.output, text), kFailed);
  fmt::print("# written to {}: GDRX_TUNE_FILE={} makes the tuner choose by it\n", options.output,
             options.output);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto options = std::make_shared<TuneOptions>();
  TuneOptions& o = *options;
  CLI::App* command =
      app.add_subcommand("tune", "measure every way of an allReduce here, for the tuner");
  command->add_option("--ranks", o.ranks,
                      "such as 2,4; without it 2, 4, ... to the CPUs, 2, 3, ... to the GPUs");
  command->add_option("-b,--minbytes", o.begin, "smallest size (K, M, G)")->capture_default_str();
  command->add_option("-e,--maxbytes", o.end, "largest size; without it 16M, on GPUs 256M");
  command->add_option("-f,--stepfactor", o.factor, "factor between sizes; without it 4, on GPUs 2")
      ->check(CLI::Range(1.1, 1e6));
  command->add_option("-n,--iters", o.iterations, "timed calls of each")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  takes_words(
      command
          ->add_option("--transports", o.transports, "of host memory: auto, shm, ucx, tcp, verbs")
          ->capture_default_str(),
      {"auto", "shm", "ucx", "tcp", "verbs"});
  command->add_option("--memory", o.memory, "host or cuda; without it both, as far as there is")
      ->check(CLI::IsMember({"host", "cuda"}));
  command->add_option("--mpirun", o.mpirun, "the launcher and its options")->capture_default_str();
  command->add_option("-o,--output", o.output, "the table")->capture_default_str();
  command->add_flag("--mpi", o.mpi,
                    "collectives of MPI programs beside the MPI's own instead, for "
                    "GDRX_MPI_TABLE; of the others it takes --ranks and -o");
  command->add_option("--show", o.show, "print this table instead of measuring");
  command->footer(kTuneExamples);
  command->callback([options] { run(*options); });
}

}  // namespace gdrx::tools
