// SPDX-License-Identifier: Apache-2.0
#include "mpi/table.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "mpi/abi/abi.hpp"

namespace gdrx::mpi {
namespace {

// Open MPI 4.1.4 on an idle host of 2 CPUs: what scripts/mpi-beside --table prints of
// results/mpi/mpi-beside-all.json, from 512 bytes on, but for large scans and broadcasts, which
// other runs did not confirm. Two ranks with a CPU each stand for all that have one, four for those
// that share some.
constexpr const char* kRoomy = R"(
2 Allreduce 512 32768
2 Allreduce 131072 -
2 Reduce 512 4096
2 Reduce_scatter_block 1024 -
2 Reduce_scatter 1024 -
2 Scan 512 4096
2 Exscan 512 4096
2 Bcast 512 4096
2 Allgather 1024 8192
2 Allgatherv 1024 8192
2 Alltoall 1024 2048
2 Alltoall 8192 8192
2 Gather 1024 1024
2 Gather 8192 8192
2 Scatter 1024 8192
)";
constexpr const char* kCrowded = R"(
4 Allreduce 4096 65536
4 Allreduce 262144 262144
4 Allreduce 1048576 -
4 Reduce 4096 32768
4 Reduce_scatter_block 8192 32768
4 Reduce_scatter_block 4194304 -
4 Reduce_scatter 8192 32768
4 Reduce_scatter 262144 -
4 Scan 4096 4096
4 Exscan 4096 16384
4 Exscan 131072 -
4 Bcast 512 16384
4 Allgather 8192 65536
4 Allgatherv 2048 65536
4 Alltoall 16384 16384
4 Gather 16384 32768
4 Scatter 1024 65536
)";

constexpr int kMostRanks = 1 << 20;
int number = 0;
std::atomic<int> fewest{0};

// Of GDRX_MPI_TABLE.
std::vector<Choice>& given() {
  static auto& table = *new std::vector<Choice>;
  return table;
}

Choice& of_ranks(std::vector<Choice>& table, int ranks) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [ranks](const Choice& one) { return one.ranks == ranks; });
  return found != table.end() ? *found : table.emplace_back(Choice{ranks, {}});
}

// False: it is no such line.
bool read_line(const std::string& line, std::vector<Choice>& table) {
  std::istringstream words(line);
  int ranks = 0;
  std::string name;
  std::string end;
  std::string more;
  Range range{};
  if (!(words >> ranks >> name >> range.least >> end) || words >> more) return false;
  std::istringstream most(end);
  if (end == "-") {
    range.most = kAny;
  } else if (!(most >> range.most) || !most.eof()) {
    return false;
  }
  const auto kind = std::find_if(kTraits.begin(), kTraits.end(),
                                 [&name](const Trait& trait) { return name == trait.name; });
  const bool is_right = ranks > 0 && ranks <= kMostRanks && range.least <= range.most &&
                        kind != kTraits.end() && kind->sized;
  if (!is_right) return false;
  of_ranks(table, ranks).of[static_cast<std::size_t>(kind - kTraits.begin())].push_back(range);
  return true;
}

const Choice& nearest(const std::vector<Choice>& table, int ranks) noexcept {
  const Choice* best = &table.front();
  for (const Choice& one : table) {
    const bool fits = one.ranks <= ranks;
    const bool best_fits = best->ranks <= ranks;
    if (fits ? !best_fits || one.ranks > best->ranks : !best_fits && one.ranks < best->ranks) {
      best = &one;
    }
  }
  return *best;
}

std::vector<Choice> known(const char* text) {
  std::vector<Choice> table;
  read_table(text, table);
  return table;
}

}  // namespace

std::string read_table(std::string_view text, std::vector<Choice>& table) {
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int count = 1; std::getline(lines, line); ++count) {
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == line.npos || read_line(line, table)) continue;
    return "line " + std::to_string(count) +
           " is not: ranks, a collective whose size all ranks know, least and most bytes";
  }
  return table.empty() ? "there is no line in it" : "";
}

bool load_table() {
  const char* const name = secure_getenv("GDRX_MPI_TABLE");
  if (name == nullptr || *name == 0) return true;
  std::ifstream file(name);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string wrong = file ? read_table(text.str(), given()) : "it cannot be read";
  for (const char letter : text.str()) {
    number = static_cast<int>(
        (static_cast<unsigned>(number) * 31U + static_cast<unsigned char>(letter)) & 0x7FFFFFFFU);
  }
  if (wrong.empty()) return true;
  std::fprintf(stderr,
               "gdrx: GDRX_MPI_TABLE=%s: %s, so MPI keeps all collectives: gdrx tune --mpi "
               "measures such a table\n",
               name, wrong.c_str());
  return false;
}

int number_of_table() noexcept { return number; }

int processors() noexcept {
  const int agreed = fewest.load(std::memory_order_relaxed);
  return agreed > 0 ? agreed : static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)));
}
void set_processors(int count) noexcept { fewest = count; }

// Never destroyed: destructors of a program's globals may call MPI.
const Choice& choice_for(int ranks) noexcept {
  static const bool kSlower = is_known_slower();
  static const auto& nothing = *new Choice{1, {}};
  static const auto& shared = *new std::vector<Choice>(known(kCrowded));
  static const auto& each = *new std::vector<Choice>(known(kRoomy));
  if (!given().empty()) return nearest(given(), ranks);
  if (!kSlower) return nothing;
  return nearest(ranks > processors() ? shared : each, ranks);
}

}  // namespace gdrx::mpi
