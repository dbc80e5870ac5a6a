// SPDX-License-Identifier: Apache-2.0
// gdrx run: mpirun or torchrun, whose ranks bind themselves to where they belong.
#include <fmt/format.h>
#include <sched.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/cpu_list.hpp"
#include "tools/commands.hpp"
#include "tools/mpirun/mpirun_command.hpp"
#include "tools/place/here.hpp"
#include "tools/run/run_words.hpp"
#include "tools/support.hpp"

namespace gdrx::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunExamples =
    "Examples:\n"
    "  gdrx run -np 8 ./app                              by mpirun: each rank near its GPU and "
    "NIC\n"
    "  gdrx run --launcher torchrun -np 8 train.py       the same by torchrun\n"
    "  gdrx run -np 16 --hostfile hosts -- ./app -v      the launcher's options before --\n"
    "  gdrx run --report -np 2 ./app                     each rank says where it is, and why\n"
    "  srun --cpu-bind=none gdrx run --as-rank ./app     under a launcher that is there already\n"
    "RunOptions: -np N (or -n, --ranks): of mpirun all ranks of the job, of torchrun those of each "
    "host; --launcher mpirun|torchrun; --report; --as-rank: a launcher is there already, which "
    "binds nothing or whose binding stays; --unbound: with --as-rank, the mask is for all ranks "
    "of the host.\n"
    "Where one host has fewer cores than ranks, Open MPI's mpirun gets --oversubscribe.\n"
    "Without -np there is a rank a GPU of this host, or a core where there is no GPU. `gdrx topo "
    "--place` shows "
    "the placement. gdrx has to be at the same path on each host.\n"
    "Exit status: the launcher's, 1 if it cannot be started, 2 for bad usage; of a rank "
    "127 where its program is not there, 126 where it cannot be executed.\n";

fs::path self() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

topo::Placement placement_here(const topo::Topology& topology, int ranks) {
  topo::PlaceRequest request = value_or_fail(request_here(topology), kFailed);
  request.ranks = ranks;
  return value_or_fail(place(topology, request), kFailed);
}

// torchrun's own Python: the packages that a script needs are there.
std::string python_of(const fs::path& torchrun) {
  std::ifstream file(torchrun);
  std::string line;
  std::getline(file, line);
  const bool named = line.starts_with("#!/") && line.find(' ') == line.npos &&
                     fs::path(line).filename().string().starts_with("python");
  if (named) return line.substr(2);
  std::error_code error;
  const fs::path beside = torchrun.parent_path() / "python3";
  return fs::exists(beside, error) ? beside.string() : "python3";
}

// As torchrun takes its words: a module, or a file that nobody can execute.
bool needs_python(const std::string& program) {
  if (program == "-m" || program == "--module" || program.ends_with(".py")) return true;
  std::error_code error;
  return fs::is_regular_file(program, error) && access(program.c_str(), X_OK) != 0;
}

// Whether another launcher or the user says which hosts there are.
bool has_hosts(const RunWords& run) {
  constexpr std::string_view kNames[] = {
      "-H",         "-host",        "--host",        "-hostfile",
      "--hostfile", "-machinefile", "--machinefile", "--default-hostfile"};
  const bool given = std::any_of(run.options.begin(), run.options.end(), [&](const auto& option) {
    return std::find(std::begin(kNames), std::end(kNames), option) != std::end(kNames);
  });
  return given || !environment_value("SLURM_JOB_ID").empty() ||
         !environment_value("PBS_NODEFILE").empty();
}

[[noreturn]] void launch(RunWords run) {
  const topo::Topology topology = value_or_fail(topo::discover({}), kFailed);
  const topo::Placement placement = placement_here(topology, run.ranks);
  run.ranks = static_cast<int>(placement.ranks.size());
  // Open MPI refuses that of one host; of several it has to count their slots itself.
  run.crowded = placement.crowded && !has_hosts(run);
  if (run.launcher == "torchrun") {
    const fs::path path = on_path("torchrun");
    if (path.empty()) throw Failure{kFailed, "there is no torchrun on PATH: it is PyTorch's"};
    const std::string python = needs_python(run.program.front()) ? python_of(path) : "";
    become(path, launcher_words(LauncherKind::torchrun, run, self(), python, {}));
  }
  const Launcher launcher = launcher_for(run.program);
  const bool hydra = launcher.family->value_apart;
  std::vector<std::string> names;
  for (const auto& [name, value] : own_variables()) names.push_back(name);
  run.launcher = launcher.path.filename();
  become(launcher.path, launcher_words(hydra ? LauncherKind::hydra : LauncherKind::open_mpi, run,
                                       self(), "", names));
}

void bind_to(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  const int most = cpus.back() + 1;
  cpu_set_t* const set = CPU_ALLOC(most);
  const std::size_t bytes = CPU_ALLOC_SIZE(most);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(cpu, bytes, set);
  const int result = sched_setaffinity(0, bytes, set);
  const int error = errno;
  CPU_FREE(set);
  if (result == 0) return;
  std::fprintf(stderr, "gdrx: run: this rank stays unbound: CPUs %s: %s\n",
               list_of_cpus(cpus).c_str(), std::strerror(error));
}

// Whether this mask is narrower than the cpuset: asking for every CPU gives the whole cpuset.
bool is_bound() {
  constexpr int kMost = 65536;
  cpu_set_t* const before = CPU_ALLOC(kMost);
  cpu_set_t* const all = CPU_ALLOC(kMost);
  const std::size_t bytes = CPU_ALLOC_SIZE(kMost);
  std::memset(all, 0xff, bytes);
  bool bound = false;
  if (sched_getaffinity(0, bytes, before) == 0 && sched_setaffinity(0, bytes, all) == 0) {
    bound = sched_getaffinity(0, bytes, all) == 0 && CPU_EQUAL_S(bytes, before, all) == 0;
    sched_setaffinity(0, bytes, before);
  }
  CPU_FREE(before);
  CPU_FREE(all);
  return bound;
}

[[noreturn]] void become_rank(const RunWords& run) {
  const auto where = local_rank([](std::string_view name) { return environment_value(name); });
  if (!where) {
    throw Failure{kFailed,
                  "run --as-rank: no launcher says which rank of its host this is "
                  "(OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, SLURM_LOCALID, LOCAL_RANK)"};
  }
  const topo::Topology topology = value_or_fail(topo::discover({}), kFailed);
  const topo::Placement placement = placement_here(topology, where->count);
  const topo::RankPlace& rank = placement.ranks[static_cast<std::size_t>(where->number)];
  for (const auto& [name, value] : rank_environment(topology, placement, rank)) {
    // The list of GPUs is the user's, in another order; what else he set stays.
    const bool list = name.ends_with("_VISIBLE_DEVICES");
    setenv(name.c_str(), value.c_str(), list ? 1 : 0);
  }
  if (!run.unbound && is_bound()) {
    std::fprintf(stderr, "gdrx: run: the launcher has bound this rank: its CPUs stay\n");
  } else {
    bind_to(rank.cpus);
  }
  if (run.report) {
    std::fprintf(stderr, "gdrx: rank %d of %d here: CPUs %s: %s\n", rank.local, where->count,
                 list_of_cpus(rank.cpus).c_str(), rank.reason.c_str());
  }
  // As shells answer.
  constexpr int kNotThere = 127;
  constexpr int kNotExecutable = 126;
  const std::string& name = run.program.front();
  const fs::path program = on_path(name);
  if (program.empty()) throw Failure{kNotThere, name + " is not on PATH"};
  if (access(program.c_str(), F_OK) != 0) throw Failure{kNotThere, name + " is not there"};
  if (fs::is_directory(program) || access(program.c_str(), X_OK) != 0) {
    throw Failure{kNotExecutable, name + " cannot be executed"};
  }
  become(program, run.program);
}

}  // namespace

void add_run(CLI::App& app) {
  auto* command = app.add_subcommand("run", "run a program with each rank near its GPU and NIC");
  command->footer(kRunExamples);
  command->prefix_command();
  command->callback([] { run(std::vector<std::string>()); });
}

void run(const std::vector<std::string>& words) {
  const RunWords parsed = value_or_fail(parse_run(words));
  if (parsed.help) become(self(), {"gdrx", "run", "--help"});
  if (parsed.as_rank) become_rank(parsed);
  launch(parsed);
}

}  // namespace gdrx::tools
