// SPDX-License-Identifier: Apache-2.0
// What the ranks of nccl_test ask of each other: of processes by MPI, or of threads of one process.
#pragma once

#include <cstdint>
#include <functional>

#include "gdrx/result.hpp"
#include "mpi-tests/nccl/libraries.hpp"

namespace gdrx::bench {

/// One rank's place. Every rank makes the same calls in the same order.
class Meeting {
 public:
  virtual ~Meeting() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual int local_rank() const = 0;  // which GPU of its host
  virtual void barrier() = 0;
  virtual double most(double mine) = 0;
  virtual std::uint64_t sum(std::uint64_t mine) = 0;
  virtual NcclId from_first(NcclId mine) = 0;
};

/// The process's place in MPI_COMM_WORLD, after MPI_Init.
class MpiMeeting final : public Meeting {
 public:
  MpiMeeting();
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  int local_rank() const override { return local_rank_; }
  void barrier() override;
  double most(double mine) override;
  std::uint64_t sum(std::uint64_t mine) override;
  NcclId from_first(NcclId mine) override;

 private:
  int rank_ = 0, ranks_ = 1, local_rank_ = 0;
};

/// Runs `rank` in so many threads; the process ends if one of them fails, since the others wait for
/// it.
void run_in_threads(int ranks, const std::function<Result<void>(Meeting&)>& rank);

}  // namespace gdrx::bench
