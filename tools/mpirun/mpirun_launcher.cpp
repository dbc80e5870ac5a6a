// SPDX-License-Identifier: Apache-2.0
#include "tools/mpirun/mpirun_launcher.hpp"

#include <algorithm>

namespace gdrx::tools {
namespace {

constexpr std::string_view kVariable = "LD_PRELOAD";

// How many words of them, from one on, have a rank preload something; 0: none. `what`: that.
std::size_t preloads(const std::vector<std::string>& words, std::size_t at, std::string& what) {
  const bool takes_variable = words[at] == "-x" || words[at] == "-genv" || words[at] == "-env";
  if (!takes_variable || at + 1 >= words.size()) return 0;
  const std::string& next = words[at + 1];
  if (next.starts_with(std::string(kVariable) + "=")) {
    what = next.substr(kVariable.size() + 1);
    return 2;
  }
  if (words[at] == "-x" || next != kVariable || at + 2 >= words.size()) return 0;
  what = words[at + 2];
  return 3;
}

// MPI takes a variable once: what the words have it preload, behind a colon each, and no word of
// theirs any more.
std::string take_preloaded(std::vector<std::string>& words) {
  std::string taken;
  for (std::size_t i = 0; i < words.size();) {
    std::string what;
    const std::size_t count = preloads(words, i, what);
    if (count == 0) {
      ++i;
      continue;
    }
    taken += ":" + what;
    const auto first = words.begin() + static_cast<std::ptrdiff_t>(i);
    words.erase(first, first + static_cast<std::ptrdiff_t>(count));
  }
  return taken;
}

const Family* find(const auto& is_it) {
  const auto found = std::find_if(families().begin(), families().end(), is_it);
  return found == families().end() ? nullptr : &*found;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies{
      {"Open MPI",
       "libgdrx-coll-ompi.so",
       "gdrx-mpi-openmpi",
       {"mpirun", "mpirun.openmpi"},
       {"Open MPI", "OpenRTE", "PRRTE"},
       {"libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40",
        "libmpi_usempi_ignore_tkr.so.40", "libmpi_cxx.so.40"},
       "-x",
       false},
      {"MPICH or Intel MPI",
       "libgdrx-coll-mpich.so",
       "gdrx-mpi-mpich",
       {"mpirun", "mpirun.mpich", "mpiexec.hydra"},
       {"HYDRA", "Intel(R) MPI"},
       {"libmpi.so.12", "libmpich.so.12", "libmpifort.so.12", "libmpichfort.so.12",
        "libmpicxx.so.12", "libmpichcxx.so.12"},
       "-genv",
       true},
      {"any MPI by MPI 5's binary interface",
       "libgdrx-coll-standard.so",
       "gdrx-mpi-mpich",
       {"mpirun", "mpiexec"},
       {},
       {"libmpi_abi.so.1"},
       "",
       false},
  };
  return kFamilies;
}

const Family* family_of_version(std::string_view printed) {
  return find([printed](const Family& one) {
    return std::any_of(one.versions.begin(), one.versions.end(), [printed](std::string_view name) {
      return printed.find(name) != printed.npos;
    });
  });
}

const Family* family_of_library(std::string_view library) {
  return find([library](const Family& one) {
    return std::find(one.libraries.begin(), one.libraries.end(), library) != one.libraries.end();
  });
}

std::vector<std::string> words_for(const Family& family, std::vector<std::string> words,
                                   const std::string& object, const std::string& others,
                                   const Variables& variables) {
  const std::string preloaded =
      object + take_preloaded(words) + (others.empty() ? "" : ":" + others);
  std::vector<std::string> told;
  // Ranks of this host get its variables anyway; those of other hosts only what is named.
  for (const auto& [name, value] : variables) {
    told.insert(told.end(), {std::string(family.option), name});
    if (family.value_apart) told.push_back(value);
  }
  const std::string name(kVariable);
  told.emplace_back(family.option);
  if (family.value_apart) {
    told.insert(told.end(), {name, preloaded});
  } else {
    told.push_back(name + "=" + preloaded);
  }
  words.insert(words.begin(), told.begin(), told.end());
  return words;
}

}  // namespace gdrx::tools
