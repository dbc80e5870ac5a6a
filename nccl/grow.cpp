// SPDX-License-Identifier: Apache-2.0
// A communicator of another's ranks and new ones, who meet by an id.
#include <vector>

#include "nccl/comm.hpp"
#include "nccl/group.hpp"

using namespace gdrx::nccl;  // NOLINT: this file defines its function

extern "C" Result ncclCommInitRankConfig(ncclComm**, int, UniqueId, int, Config*);

namespace {

struct Told {
  UniqueId id{};
  int known = 0;  // one rank has it
};

// The rank that has the id is not named: every rank says what it has.
gdrxResult_t tell_all(gdrxComm_t comm, const Told& mine, Told& found, int& rank) {
  int ranks = 0;
  gdrxCommCount(comm, &ranks);
  gdrxCommUserRank(comm, &rank);
  std::vector<Told> all(static_cast<std::size_t>(ranks));
  const gdrxResult_t result =
      gdrxAllGather(&mine, all.data(), sizeof mine, gdrxUint8, comm, gdrxStreamNone, nullptr);
  for (const Told& told : all) {
    if (told.known == 1) found = told;
  }
  return result;
}

}  // namespace

GDRX_NCCL(ncclCommGrow, ncclComm* comm, int ranks, const UniqueId* id, int rank, ncclComm** newcomm,
          Config* config) {
  constexpr auto kName = "ncclCommGrow";
  if (comm == nullptr) {
    if (id != nullptr) return ncclCommInitRankConfig(newcomm, ranks, *id, rank, config);
    return refuse(kName, kInvalidArgument, "a new rank needs uniqueId");
  }
  if (rank != -1) return refuse(kName, kInvalidArgument, "rank is -1 where there is a comm");
  if (group.depth > 0) return absent(kName, "a communicator does not grow in a group");
  Told common;
  int own = 0;
  const Result met = guarded(kName, [&] {
    const Told mine = id != nullptr ? Told{*id, 1} : Told{};
    return through(kName, comm, [&](gdrxComm_t gdrx) { return tell_all(gdrx, mine, common, own); });
  });
  if (met != kSuccess) return met;
  if (common.known == 0) return refuse(kName, kInvalidArgument, "no rank has given uniqueId");
  return ncclCommInitRankConfig(newcomm, ranks, common.id, own, config);
}
