// SPDX-License-Identifier: Apache-2.0
// Makes gdrx's communicator for one of MPI's. It is the program's own communicator that the ranks
// agree by: all of them are in the same blocking call of it, and MPI has not got that call.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "mpi/agree.hpp"
#include "mpi/communicator.hpp"
#include "mpi/settings.hpp"
#include "mpi/waiting.hpp"

namespace gdrx::mpi {
namespace {

// The same on every rank of a host, as gdrx sees it.
std::uint64_t host_number() {
  std::string name;
  if (const char* const given = std::getenv("GDRX_HOST_ID")) {
    name = given;
  } else {
    std::ifstream("/proc/sys/kernel/random/boot_id") >> name;
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    name += host;
  }
  std::uint64_t number = 0xCBF29CE484222325U;  // FNV-1a
  for (const char letter : name) {
    number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  }
  return number;
}

struct Least {
  std::uint64_t host;
  std::uint64_t inverse_host;
  std::uint64_t good;
};

// What all ranks have at least; empty handed if MPI fails, which it does on all.
Least least_of_all(MPI_Comm comm, Least mine) {
  Least all{};
  constexpr int kWords = sizeof mine / sizeof mine.host;
  if (real::Allreduce(&mine, &all, kWords, MPI_UINT64_T, MPI_MIN, comm) != MPI_SUCCESS) return {};
  return all;
}

int all_gather(const void* mine, void* all, std::size_t bytes, void* user) {
  const auto count = static_cast<int>(bytes);
  return real::Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE,
                         static_cast<State*>(user)->comm);
}

bool init(State& state) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  // A rank that comes hours later is right in MPI.
  if (std::getenv("GDRX_TIMEOUT") == nullptr) config.timeout_seconds = -1;
  const Engine& gdrx = *engine();
  const gdrxResult_t made =
      gdrx.CommInitAllGather(&state.gdrx, state.size, state.rank, all_gather, &state, &config);
  if (made != gdrxSuccess) {
    std::fprintf(stderr, "gdrx: MPI keeps the collectives of a communicator of %d ranks: %s\n",
                 state.size, gdrx.GetLastError(nullptr));
    return false;
  }
  return gdrx.CommOnWait(state.gdrx, while_waiting, nullptr) == gdrxSuccess;
}

// Every rank has come as far as this. The end is the same on all.
void make_alike(State& state) noexcept {
  const bool mine = init(state);
  if (least_of_all(state.comm, {0, 0, mine ? 1U : 0U}).good == 1) {
    state.stage = State::Stage::live;
    return;
  }
  state.why = Verdict::broken;
  if (state.gdrx != nullptr) engine()->CommDestroy(std::exchange(state.gdrx, nullptr));
}

// Collective: whether the ranks are on several hosts. Empty: gdrx declines, on all of them alike.
std::optional<bool> meet_hosts(State& state, bool good) noexcept {
  state.stage = State::Stage::declined;
  state.why = Verdict::worlds;
  if (!is_of_this_world(state.comm, state.size)) return std::nullopt;
  static const std::uint64_t kHost = host_number();
  const Least all =
      least_of_all(state.comm, {kHost, ~kHost, good && engine() != nullptr ? 1U : 0U});
  state.why = Verdict::broken;
  if (all.good == 0) return std::nullopt;
  return all.host != ~all.inverse_host;
}

}  // namespace

void make(State& state, bool good) noexcept {
  const std::optional<bool> apart = meet_hosts(state, good);
  if (!apart) return;
  if (*apart && !settings().all) {
    state.why = Verdict::hosts;
  } else {
    make_alike(state);
  }
}

void make_in_stream(State& state, bool good) noexcept {
  const std::optional<bool> apart = meet_hosts(state, good);
  if (!apart) return;
  state.apart = *apart;
  make_alike(state);
}

}  // namespace gdrx::mpi
