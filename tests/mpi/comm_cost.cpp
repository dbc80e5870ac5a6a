// SPDX-License-Identifier: Apache-2.0
// What communicators cost a process: time to make them, and what it holds for them. Under mpirun:
// comm_cost [SPLITS]. Times are the slowest rank's, counts and bytes rank 0's.
#include <dirent.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gdrx/gdrx_mpi.h"

namespace {

using Clock = std::chrono::steady_clock;

long entries_of(const char* folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder), closedir);
  long entries = 0;
  while (open && readdir(open.get()) != nullptr) ++entries;
  return entries - 2;  // itself and its parent
}

// In KiB, of a line as "Rss: 123 kB".
long memory_of(const std::string& name) {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::atol(line.c_str() + name.size());
  }
  return -1;
}

long mappings_of(const std::string& part) {
  std::ifstream lines("/proc/self/maps");
  long found = 0;
  for (std::string line; std::getline(lines, line);) {
    found += line.find(part) != std::string::npos ? 1 : 0;
  }
  return found;
}

int rank = -1;

void must(gdrxResult_t result, const char* what) {
  if (result == gdrxSuccess) return;
  std::fprintf(stderr, "comm_cost: rank %d: %s: %s\n", rank, what, gdrxGetLastError(nullptr));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// In milliseconds, of the slowest rank.
double time_of(const std::function<void()>& body) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  body();
  double took = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took;
}

void show_held(const char* when) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) return;
  std::printf(
      "%-28s %4ld descriptors %3ld threads %3ld shared mappings %3ld System V %7ld KiB "
      "resident %7ld KiB proportional\n",
      when, entries_of("/proc/self/fd"), entries_of("/proc/self/task"), mappings_of("memfd:"),
      mappings_of("/SYSV"), memory_of("Rss:"), memory_of("Pss:"));
}

void show_time(const char* what, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  if (rank != 0) return;
  std::printf("%-28s %8.2f ms least %8.2f median %8.2f most, of %zu\n", what, times.front(),
              times[times.size() / 2], times.back(), times.size());
}

void use(gdrxComm_t comm) {
  float in = 1, out = 0;
  must(gdrxAllReduce(&in, &out, 1, gdrxFloat32, gdrxSum, comm, nullptr, nullptr), "allReduce");
}

gdrxComm_t from_mpi() {
  gdrxComm_t comm = nullptr;
  must(gdrxCommInitMPI(&comm, MPI_COMM_WORLD, nullptr), "init");
  return comm;
}

gdrxComm_t from_id() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  gdrxUniqueId id{};
  if (rank == 0) must(gdrxGetUniqueId(&id), "unique id");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  gdrxComm_t comm = nullptr;
  must(gdrxCommInitRank(&comm, ranks, id, rank, nullptr), "init by id");
  return comm;
}

gdrxComm_t split_of(gdrxComm_t comm, int color) {
  gdrxComm_t made = nullptr;
  must(gdrxCommSplit(comm, color, rank, &made, nullptr), "split");
  return made;
}

void measure(const char* what, int times, const std::function<gdrxComm_t()>& make) {
  std::vector<double> took;
  for (int i = 0; i < times; ++i) {
    gdrxComm_t comm = nullptr;
    took.push_back(time_of([&] { comm = make(); }));
    use(comm);
    must(gdrxCommDestroy(comm), "destroy");
  }
  show_time(what, std::move(took));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int splits = argc > 1 ? std::atoi(argv[1]) : 64;
  show_held("before");
  gdrxComm_t first = nullptr;
  show_time("the first", {time_of([&] { first = from_mpi(); })});
  use(first);
  show_held("with one");
  measure("a second, by MPI", 9, from_mpi);
  measure("a second, by id", 9, from_id);
  measure("split, all", 15, [&] { return split_of(first, 0); });
  measure("split, even and odd", 15, [&] { return split_of(first, rank % 2); });
  std::vector<gdrxComm_t> many;
  show_time("all splits", {time_of([&] {
              for (int i = 0; i < splits; ++i) many.push_back(split_of(first, 0));
            })});
  show_held("with splits, no call yet");
  for (gdrxComm_t comm : many) use(comm);
  show_held("with splits");
  for (gdrxComm_t comm : many) must(gdrxCommDestroy(comm), "destroy");
  show_held("splits destroyed");
  must(gdrxCommDestroy(first), "destroy");
  MPI_Finalize();
}
