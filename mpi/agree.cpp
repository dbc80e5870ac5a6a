// SPDX-License-Identifier: Apache-2.0
// The ranks that are in MPI_Init together look whether GDRX_MPI is the same on all of them. Later
// there is no call in which a rank that has gdrx off could tell.
#include "mpi/agree.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mpi/abi/abi.hpp"
#include "mpi/library.hpp"
#include "mpi/persistent.hpp"
#include "mpi/settings.hpp"
#include "mpi/table.hpp"

namespace gdrx::mpi {
namespace {

enum Mode { kAuto, kAll, kOff };

std::atomic<bool> asked{false};
std::atomic<bool> agreed{false};

// Ranks are in MPI_Init together, so one that does not answer for as long has not got this library.
constexpr std::chrono::seconds kPatience{60};
constexpr std::chrono::microseconds kNap{200};

/// A mode or a table's number, and the least rank that has it.
struct Ballot {
  int value;
  int rank;
};
// The least mode, the greatest by its negative; the tables'; the fewest processors of a host.
using Ballots = std::array<Ballot, 5>;

// A rank without the library never comes: that is
// told, and MPI may be waited for by a debugger, too.
bool compare(const Ballots& mine, Ballots& all, MPI_Comm world, int rank) {
  MPI_Request request{};
  if (real::Iallreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_2INT, MPI_MINLOC,
                       world, &request) != MPI_SUCCESS) {
    return false;
  }
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  bool told = false;
  int done = 0;
  while (real::Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
    if (!told && std::chrono::steady_clock::now() > limit) {
      told = true;
      std::fprintf(stderr,
                   "gdrx: rank %d waits in MPI_Init for ranks that do not come. If they have not "
                   "loaded this library, give it to every rank of the job, or to none (%s "
                   "LD_PRELOAD, or gdrx mpirun)\n",
                   rank, kAbi.for_all);
    }
    std::this_thread::sleep_for(kNap);
  }
  return done != 0;
}

const char* word_of(int mode) noexcept {
  return mode == kOff ? "off" : mode == kAll ? "all" : "auto";
}

// Equal on every rank, but for who prints.
bool agree(MPI_Comm world, int rank) {
  const int mode = settings().off ? kOff : settings().all ? kAll : kAuto;
  const int table = number_of_table();
  Ballots all{};
  const Ballots mine{
      {{mode, rank}, {-mode, rank}, {table, rank}, {-table, rank}, {processors(), rank}}};
  if (!compare(mine, all, world, rank)) return false;
  set_processors(all[4].value);
  const bool same_mode = all[0].value == -all[1].value;
  if (same_mode && all[2].value == -all[3].value) return true;
  if (rank != 0) return false;
  Ballot one = same_mode ? all[2] : all[0];
  Ballot other = same_mode ? all[3] : all[1];
  other.value = -other.value;
  if (other.rank < one.rank) std::swap(one, other);
  const std::string values =
      same_mode ? "GDRX_MPI_TABLE is one" : std::string("GDRX_MPI is ") + word_of(one.value);
  std::fprintf(stderr,
               "gdrx: %s on rank %d and %s on rank %d, so MPI keeps all collectives: give every "
               "rank the same (%s %s)\n",
               values.c_str(), one.rank, same_mode ? "another" : word_of(other.value), other.rank,
               kAbi.for_all, same_mode ? "GDRX_MPI_TABLE" : "GDRX_MPI");
  return false;
}

}  // namespace

void agree_in_init() noexcept {
  if (asked.exchange(true)) return;  // MPI_Init of a tool's, and the other name's
  const MPI_Comm world = MPI_COMM_WORLD;
  int rank = 0;
  int size = 0;
  if (!is_served() || real::Comm_rank(world, &rank) != MPI_SUCCESS ||
      real::Comm_size(world, &size) != MPI_SUCCESS) {
    return;  // another MPI, of which nothing is taken
  }
  agreed = size == 1 || agree(world, rank);
  if (agreed) begin_persistent();
}

bool ranks_agree() noexcept { return agreed; }

bool is_of_this_world(MPI_Comm comm, int size) noexcept {
  MPI_Group ours{};
  MPI_Group theirs{};
  if (real::Comm_group(MPI_COMM_WORLD, &ours) != MPI_SUCCESS) return false;
  bool is = real::Comm_group(comm, &theirs) == MPI_SUCCESS;
  if (is) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::vector<int> in_world(ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    is = real::Group_translate_ranks(theirs, size, ranks.data(), ours, in_world.data()) ==
             MPI_SUCCESS &&
         std::find(in_world.begin(), in_world.end(), MPI_UNDEFINED) == in_world.end();
    real::Group_free(&theirs);
  }
  real::Group_free(&ours);
  return is;
}

}  // namespace gdrx::mpi
