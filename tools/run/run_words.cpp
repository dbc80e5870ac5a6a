// SPDX-License-Identifier: Apache-2.0
#include "tools/run/run_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gdrx::tools {
namespace {

using Words = std::vector<std::string>;

constexpr int kMost = 1 << 20;

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size();
  if (error != std::errc() || !whole || number < 0) return std::nullopt;
  return number;
}

bool is_any(std::string_view word, std::initializer_list<std::string_view> of) {
  return std::find(of.begin(), of.end(), word) != of.end();
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// A letter more, less or another, or two that changed places.
bool nearly(std::string_view a, std::string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  if (a == b || a.size() > b.size() + 1) return false;
  const auto at =
      static_cast<std::size_t>(std::mismatch(b.begin(), b.end(), a.begin()).first - b.begin());
  if (a.size() > b.size()) return a.substr(at + 1) == b.substr(at);
  if (a.substr(at + 1) == b.substr(at + 1)) return true;
  return at + 1 < a.size() && a[at] == b[at + 1] && a[at + 1] == b[at] &&
         a.substr(at + 2) == b.substr(at + 2);
}

// What stands before the program.
class Parser {
 public:
  explicit Parser(const Words& words) : words_(words) {
    divided_ = std::find(words.begin(), words.end(), "--") != words.end();
  }

  Result<RunWords> parse() {
    for (; at_ < words_.size() && words_[at_] != "--"; ++at_) {
      if (run_.help) return run_;
      if (GDRX_TRY(take_own())) continue;
      if (begins_program()) break;
      GDRX_TRY(take_launchers());
    }
    if (run_.help) return run_;
    if (at_ < words_.size() && words_[at_] == "--") ++at_;
    run_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
    if (run_.program.empty()) return fail(Errc::invalid_argument, "run: what is to be run?");
    return checked();
  }

 private:
  // A word that is an option of gdrx, with its value. A launcher's options may stand before it.
  Result<bool> take_own() {
    const std::string& whole = words_[at_];
    const std::size_t equals = whole.starts_with("--") ? whole.find('=') : whole.npos;
    const std::string word = whole.substr(0, equals);
    const bool takes = is_any(word, {"--launcher", "-np", "-n", "--ranks"});
    if (!takes) {
      if (is_any(word, {"--report", "--as-rank", "--unbound"}) && equals != whole.npos) {
        return fail(Errc::invalid_argument, fmt::format("run: {} takes no value", word));
      }
      if (run_.options.empty() && is_any(word, {"--help", "-h"})) return run_.help = true;
      if (word == "--report") return run_.report = true;
      if (word == "--unbound") return run_.unbound = true;
      if (word == "--as-rank") return run_.as_rank = true;
      return false;
    }
    std::string value;
    if (equals != whole.npos) {
      value = whole.substr(equals + 1);
    } else {
      if (at_ + 1 >= words_.size()) {
        return fail(Errc::invalid_argument, fmt::format("run: {} of what?", word));
      }
      value = words_[++at_];
    }
    GDRX_TRY(word == "--launcher" ? take_launcher(value) : take_ranks(word, value));
    return true;
  }

  Result<void> take_launcher(const std::string& value) {
    run_.launcher = value;
    says_ = "--launcher";
    if (is_any(value, {"mpirun", "torchrun"})) return {};
    return fail(Errc::invalid_argument,
                fmt::format("run: --launcher {}: mpirun or torchrun", value));
  }

  Result<void> take_ranks(const std::string& word, const std::string& value) {
    run_.ranks = number_of(value).value_or(0);
    says_ = word;
    if (run_.ranks >= 1 && run_.ranks <= kMost) return {};
    return fail(Errc::invalid_argument, fmt::format("run: {} {}: 1 to {}", word, value, kMost));
  }

  // Behind an option of the launcher a word may be its value: then a "--" has to divide.
  bool begins_program() const {
    const bool module = run_.launcher == "torchrun" && is_any(words_[at_], {"-m", "--module"});
    return run_.options.empty() && (module || !words_[at_].starts_with('-'));
  }

  Result<void> take_launchers() {
    const std::string& word = words_[at_];
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    for (const std::string_view own : {"--launcher", "--ranks", "--as-rank", "--report"}) {
      if (name.starts_with("--") && nearly(name, own)) {
        return fail(Errc::invalid_argument, fmt::format("run: {}: is {} meant?", word, own));
      }
    }
    if (!divided_) {
      return fail(Errc::invalid_argument,
                  fmt::format("run: {} is none of gdrx's options: those of {} stand before a --, "
                              "as in `gdrx run -np 4 --hostfile hosts -- ./app`",
                              word, run_.launcher));
    }
    run_.options.push_back(word);
    return {};
  }

  Result<RunWords> checked() const {
    if (run_.as_rank) {
      const std::string beside = run_.options.empty() ? says_ : run_.options.front();
      if (beside.empty()) return run_;
      return fail(Errc::invalid_argument,
                  fmt::format("run: {} beside --as-rank: a launcher is there already", beside));
    }
    const auto several = [](const Words& words) {
      return std::find(words.begin(), words.end(), ":") != words.end();
    };
    if (run_.launcher == "mpirun" && (several(run_.options) || several(run_.program))) {
      return fail(Errc::invalid_argument,
                  "run: \":\" would start several programs, of which one alone would be bound: use "
                  "mpirun with `gdrx run --as-rank` before each program");
    }
    return run_;
  }

  const Words& words_;
  std::size_t at_ = 0;
  bool divided_ = false;
  std::string says_;  // an option that a launcher's rank has no use for
  RunWords run_;
};

bool rendezvous(const Words& options) {
  constexpr std::string_view kNames[] = {"--rdzv",      "--nnodes",    "--master",
                                         "--node-rank", "--node_rank", "--standalone"};
  return std::any_of(options.begin(), options.end(), [&](const std::string& option) {
    return std::any_of(std::begin(kNames), std::end(kNames),
                       [&](std::string_view name) { return option.starts_with(name); });
  });
}

bool sets(const Words& options, std::string_view variable) {
  for (std::size_t i = 0; i + 1 < options.size(); ++i) {
    const std::string_view given = options[i + 1];
    if (options[i] == "-x" && given.substr(0, given.find('=')) == variable) return true;
  }
  return false;
}

// Slurm's "4(x2),3": four on each of two hosts, then three.
std::optional<int> at_node(std::string_view list, int node) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view part = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const auto times = part.find("(x");
    const auto count = number_of(part.substr(0, times));
    const bool closed = part.ends_with(')');
    if (!count || closed != (times != part.npos)) return std::nullopt;
    const auto hosts = closed ? number_of(part.substr(times + 2, part.size() - times - 3)) : 1;
    if (!hosts) return std::nullopt;
    if (node < *hosts) return count;
    node -= *hosts;
  }
  return std::nullopt;
}

std::optional<LocalRank> valid(std::optional<int> number, std::optional<int> count) {
  if (!number || !count || *number >= *count || *count > kMost) return std::nullopt;
  return LocalRank{*number, *count};
}

}  // namespace

Result<RunWords> parse_run(const Words& words) { return Parser(words).parse(); }

Words launcher_words(LauncherKind kind, const RunWords& run, const std::string& self,
                     const std::string& python, const Words& variables) {
  const std::string ranks = std::to_string(run.ranks);
  Words words{run.launcher};
  if (kind == LauncherKind::torchrun) {
    // These spellings are known to every version.
    append(words, {"--nproc_per_node", ranks});
    if (!rendezvous(run.options)) words.emplace_back("--standalone");
    append(words, run.options);
    words.emplace_back("--no_python");
  } else {
    append(words, {"-np", ranks});
    // Ranks bind themselves: the launcher's own binding would hide cores from that.
    append(words, {kind == LauncherKind::open_mpi ? "--bind-to" : "-bind-to", "none"});
    if (kind == LauncherKind::open_mpi) {
      if (run.crowded) words.emplace_back("--oversubscribe");
      for (const std::string& name : variables) {
        if (!sets(run.options, name)) append(words, {"-x", name});
      }
    }
    append(words, run.options);
  }
  append(words, {self, "run", "--as-rank", "--unbound"});
  if (run.report) words.emplace_back("--report");
  words.emplace_back("--");
  if (kind == LauncherKind::torchrun && !python.empty()) append(words, {python, "-u"});
  append(words, run.program);
  return words;
}

std::optional<LocalRank> local_rank(const std::function<std::string(std::string_view)>& variable) {
  struct Names {
    std::string_view number;
    std::string_view count;
  };
  const auto by = [&](const Names& names) {
    return valid(number_of(variable(names.number)), number_of(variable(names.count)));
  };
  constexpr Names kTorchrun{"LOCAL_RANK", "LOCAL_WORLD_SIZE"};
  // A worker of torchrun below mpirun or srun is torchrun's. Without torchrun the same names may
  // be left from a shell, so that what MPI says is nearer.
  if (!variable("TORCHELASTIC_RUN_ID").empty()) {
    if (const auto rank = by(kTorchrun)) return rank;
  }
  constexpr Names kNames[] = {{"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                              {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                              {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"}};
  for (const Names& names : kNames) {
    if (const auto rank = by(names)) return rank;
  }
  if (const auto rank = by(kTorchrun)) return rank;
  // The step's list first: the other is what the job was asked for.
  const auto number = number_of(variable("SLURM_LOCALID"));
  const auto node = number_of(variable("SLURM_NODEID"));
  const std::string list = variable("SLURM_STEP_TASKS_PER_NODE");
  // Without the host's number a list of equal hosts alone is of use.
  const bool told = node || list.find(',') == list.npos;
  if (const auto rank = valid(number, told ? at_node(list, node.value_or(0)) : std::nullopt)) {
    return rank;
  }
  if (!list.empty()) return std::nullopt;
  return valid(number, number_of(variable("SLURM_NTASKS_PER_NODE")));
}

}  // namespace gdrx::tools
