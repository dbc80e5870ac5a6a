// SPDX-License-Identifier: Apache-2.0
// Four ranks in one process, no MPI: each thread sums a vector with the others.
#include <gdrx/communicator.hpp>

#include <cstdio>
#include <thread>
#include <vector>

int main() {
  constexpr int kRanks = 4;
  std::vector<gdrx::api::Communicator> ranks = gdrx::api::Communicator::all(kRanks);
  std::vector<std::jthread> threads;
  for (gdrx::api::Communicator& comm : ranks) {
    threads.emplace_back([&comm] {
      std::vector<float> gradient(1000, static_cast<float>(comm.rank() + 1));
      comm.all_reduce<float>(gradient);
      std::printf("rank %d: %g\n", comm.rank(), static_cast<double>(gradient.front()));
    });
  }
}
