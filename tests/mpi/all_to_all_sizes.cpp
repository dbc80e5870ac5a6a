// SPDX-License-Identifier: Apache-2.0
// gdrxAllToAllv of random sizes, every byte checked. Under mpirun:
//   all_to_all_sizes [ROUNDS [LARGE]]
// Each pair of ranks has 0 bytes, a few, or up to 1 MiB, drawn anew each round. LARGE: so many
// bytes from rank 0 to the last one, besides.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "gdrx/gdrx_mpi.h"

namespace {

int rank = -1;
int size = 0;

void must(gdrxResult_t result, const char* what, gdrxComm_t comm) {
  if (result == gdrxSuccess) return;
  std::fprintf(stderr, "all_to_all_sizes: rank %d: %s: %s\n", rank, what, gdrxGetLastError(comm));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// The same on every rank.
std::size_t bytes_of(int round, int from, int to, std::size_t large) {
  std::seed_seq seed{round, from, to};
  std::mt19937_64 random(seed);
  const std::size_t most[] = {0, 1, 9, 600, 20'000, std::size_t{1} << 20};
  const std::size_t bytes = random() % (most[random() % 6] + 1);
  return bytes + (from == 0 && to == size - 1 ? large : 0);
}

std::uint64_t word_of(int round, int from, int to, std::size_t at) {
  const auto key = static_cast<std::uint64_t>((round * 64 + from) * 64 + to + 1);
  return (key * 0x9e3779b97f4a7c15) ^ (at * 0xd6e8feb86659fd93);
}

// The last word may be cut.
template <class Visit>
void each_word(std::size_t bytes, Visit visit) {
  for (std::size_t at = 0; at < bytes; at += 8) visit(at, bytes - at < 8 ? bytes - at : 8);
}

struct Side {
  std::vector<std::size_t> counts, places;
  std::vector<std::uint8_t> data;
};

// Blocks lie at odd places, and bytes that belong to none are between them.
Side side_of(int round, bool sends, std::size_t large) {
  Side side;
  std::size_t end = 3;
  for (int peer = 0; peer < size; ++peer) {
    side.counts.push_back(sends ? bytes_of(round, rank, peer, large)
                                : bytes_of(round, peer, rank, large));
    side.places.push_back(end);
    end += side.counts.back() + 5;
  }
  side.data.assign(end, 0xee);
  return side;
}

std::size_t wrong_of(int round, const Side& got) {
  std::size_t wrong = 0;
  std::size_t between = 0;
  for (int peer = 0; peer < size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    const std::uint8_t* const block = got.data.data() + got.places[at];
    each_word(got.counts[at], [&](std::size_t place, std::size_t bytes) {
      const std::uint64_t word = word_of(round, peer, rank, place);
      wrong += std::memcmp(block + place, &word, bytes) != 0 ? 1 : 0;
    });
    for (; between < got.places[at]; ++between) wrong += got.data[between] != 0xee ? 1 : 0;
    between += got.counts[at];
  }
  for (; between < got.data.size(); ++between) wrong += got.data[between] != 0xee ? 1 : 0;
  return wrong;
}

std::size_t exchange(int round, std::size_t large, gdrxComm_t comm) {
  Side sent = side_of(round, true, large);
  for (int peer = 0; peer < size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    each_word(sent.counts[at], [&](std::size_t place, std::size_t bytes) {
      const std::uint64_t word = word_of(round, rank, peer, place);
      std::memcpy(sent.data.data() + sent.places[at] + place, &word, bytes);
    });
  }
  Side got = side_of(round, false, large);
  must(
      gdrxAllToAllv(sent.data.data(), sent.counts.data(), sent.places.data(), got.data.data(),
                    got.counts.data(), got.places.data(), gdrxUint8, comm, gdrxStreamNone, nullptr),
      "gdrxAllToAllv", comm);
  return wrong_of(round, got);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  const std::size_t large = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  gdrxComm_t comm = nullptr;
  must(gdrxCommInitMPI(&comm, MPI_COMM_WORLD, nullptr), "gdrxCommInitMPI", nullptr);
  unsigned long long wrong = 0;
  for (int round = 0; round < rounds; ++round) wrong += exchange(round, large, comm);
  unsigned long long all = 0;
  MPI_Allreduce(&wrong, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d ranks, %d rounds: %llu wrong\n", size, rounds, all);
  must(gdrxCommDestroy(comm), "gdrxCommDestroy", nullptr);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
