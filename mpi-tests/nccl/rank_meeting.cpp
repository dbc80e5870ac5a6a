// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/nccl/rank_meeting.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

namespace gdrx::bench {
namespace {

/// What the threads share.
struct Table {
  explicit Table(int ranks)
      : all(ranks), reals(static_cast<std::size_t>(ranks)), counts(reals.size()) {}
  std::barrier<> all;
  std::vector<double> reals;
  std::vector<std::uint64_t> counts;
  NcclId id{};
};

class ThreadMeeting final : public Meeting {
 public:
  ThreadMeeting(Table& table, int rank) : table_(table), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(table_.reals.size()); }
  int local_rank() const override { return rank_; }
  void barrier() override { table_.all.arrive_and_wait(); }
  double most(double mine) override {
    put(table_.reals, mine);
    const double found = *std::max_element(table_.reals.begin(), table_.reals.end());
    barrier();  // before anybody writes again
    return found;
  }
  std::uint64_t sum(std::uint64_t mine) override {
    put(table_.counts, mine);
    const auto found =
        std::accumulate(table_.counts.begin(), table_.counts.end(), std::uint64_t{0});
    barrier();
    return found;
  }
  NcclId from_first(NcclId mine) override {
    if (rank_ == 0) table_.id = mine;
    barrier();
    return table_.id;
  }

 private:
  template <class Value>
  void put(std::vector<Value>& values, Value mine) {
    values[static_cast<std::size_t>(rank_)] = mine;
    barrier();
  }
  Table& table_;
  int rank_;
};

}  // namespace

MpiMeeting::MpiMeeting() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  MPI_Comm local = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  MPI_Comm_rank(local, &local_rank_);
  MPI_Comm_free(&local);
}

void MpiMeeting::barrier() { MPI_Barrier(MPI_COMM_WORLD); }

double MpiMeeting::most(double mine) {
  double found = 0;
  MPI_Allreduce(&mine, &found, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return found;
}

std::uint64_t MpiMeeting::sum(std::uint64_t mine) {
  std::uint64_t found = 0;
  MPI_Allreduce(&mine, &found, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return found;
}

NcclId MpiMeeting::from_first(NcclId mine) {
  MPI_Bcast(mine.bytes.data(), static_cast<int>(mine.bytes.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  return mine;
}

void run_in_threads(int ranks, const std::function<Result<void>(Meeting&)>& rank) {
  Table table(ranks);
  std::vector<std::jthread> threads;
  for (int i = 0; i < ranks; ++i) {
    threads.emplace_back([&, i] {
      ThreadMeeting place(table, i);
      const auto done = rank(place);
      if (done) return;
      fmt::print(stderr, "nccl_test: rank {}: {}\n", i, describe(done.error()));
      std::fflush(nullptr);
      _exit(2);
    });
  }
}

}  // namespace gdrx::bench
