// SPDX-License-Identifier: Apache-2.0
#include "tools/run/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gdrx::tools {
namespace {

using Words = std::vector<std::string>;

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  // Slurm's "4(x2)" is four on each of two hosts.
  if (end != text.data() + text.size() && *end != '(' && *end != ',') return std::nullopt;
  return number;
}

bool is_any(std::string_view word, std::initializer_list<std::string_view> of) {
  return std::find(of.begin(), of.end(), word) != of.end();
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

}  // namespace

Result<RunWords> parse_run(const Words& words) {
  constexpr int kMost = 1 << 20;
  RunWords run;
  const auto end = std::find(words.begin(), words.end(), "--");
  const bool divided = end != words.end();
  std::size_t at = 0;
  const auto value = [&](std::string_view option) -> Result<std::string> {
    if (at + 1 >= words.size())
      return fail(Errc::invalid_argument, fmt::format("run: {} of what?", option));
    return words[++at];
  };
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    if (word == "--launcher") {
      run.launcher = GDRX_TRY(value(word));
      if (is_any(run.launcher, {"mpirun", "torchrun"})) continue;
      return fail(Errc::invalid_argument,
                  fmt::format("run: --launcher {}: mpirun or torchrun", run.launcher));
    }
    if (is_any(word, {"-np", "-n", "--ranks"})) {
      const std::string text = GDRX_TRY(value(word));
      const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
      run.ranks = digits ? number_of(text).value_or(0) : 0;
      if (run.ranks >= 1 && run.ranks <= kMost) continue;
      return fail(Errc::invalid_argument, fmt::format("run: {} {}: 1 to {}", word, text, kMost));
    }
    if (word == "--as-rank" || word == "--report") {
      (word == "--report" ? run.report : run.as_rank) = true;
    } else if (divided) {
      run.options.push_back(word);
    } else if (word.starts_with('-')) {
      return fail(Errc::invalid_argument,
                  fmt::format("run: {} is none of gdrx's options: those of {} stand before a --, "
                              "as in `gdrx run -np 4 --hostfile hosts -- ./app`",
                              word, run.launcher));
    } else {
      break;
    }
  }
  if (divided && at < words.size() && words[at] == "--") ++at;
  run.program.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  if (run.program.empty()) return fail(Errc::invalid_argument, "run: what is to be run?");
  return run;
}

Words launcher_words(LauncherKind kind, const RunWords& run, const std::string& self,
                     const std::string& python, const Words& variables) {
  const std::string ranks = std::to_string(run.ranks);
  Words words{run.launcher};
  if (kind == LauncherKind::torchrun) {
    // These spellings are known to every version.
    append(words, {"--nproc_per_node", ranks});
    if (run.options.empty()) words.emplace_back("--standalone");
    append(words, run.options);
    words.emplace_back("--no_python");
  } else {
    append(words, {"-np", ranks});
    // Ranks bind themselves: the launcher's own binding would hide cores from that.
    append(words, {kind == LauncherKind::open_mpi ? "--bind-to" : "-bind-to", "none"});
    if (kind == LauncherKind::open_mpi) {
      words.emplace_back("--oversubscribe");
      for (const std::string& name : variables) append(words, {"-x", name});
    }
    append(words, run.options);
  }
  append(words, {self, "run", "--as-rank"});
  if (run.report) words.emplace_back("--report");
  words.emplace_back("--");
  if (kind == LauncherKind::torchrun && run.program.front().ends_with(".py")) {
    append(words, {python, "-u"});
  }
  append(words, run.program);
  return words;
}

std::optional<LocalRank> local_rank(const std::function<std::string(std::string_view)>& variable) {
  struct Names {
    std::string_view number;
    std::string_view count;
  };
  // A worker of torchrun below mpirun or srun is torchrun's.
  constexpr Names kNames[] = {{"LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                              {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                              {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
                              {"SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
                              {"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}};
  for (const Names& names : kNames) {
    const auto number = number_of(variable(names.number));
    const auto count = number_of(variable(names.count));
    if (number && count && *number < *count) return LocalRank{*number, *count};
  }
  return std::nullopt;
}

}  // namespace gdrx::tools
