// SPDX-License-Identifier: Apache-2.0
// One row: check some calls, time the others, the same way for gdrx and for MPI.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrx/gdrx.h"
#include "mpi-tests/data.hpp"
#include "mpi-tests/gpu_copy.hpp"
#include "mpi-tests/options.hpp"

namespace gdrx::bench {

struct Times {
  double p50 = 0;  // us, of the slowest rank of each call
  double p99 = 0;
};

struct Row {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
  DataType type{};
  ReduceOp op{};
  std::string algorithm;
  std::string transport;
  bool cuda = false;
  bool in_place = false;
  bool registered = false;  // all buffers were, as the call itself says
  Times time;
  double algbw = 0;  // GB/s
  double busbw = 0;
  std::uint64_t wrong = 0;  // elements, guards and messages too many or too few, all ranks
  std::optional<Times> mpi;
};

/// Prints the error as this rank's and ends the process at once: other ranks, and MPI, may hang.
[[noreturn]] void die(int rank, const std::string& message);

/// The buffers and the reference of one (type, op, size), shared by its rows.
class Case {
 public:
  Case(const Options& options, int rank, int ranks, DataType type, ReduceOp op,
       std::uint64_t bytes);
  Row run(gdrxComm_t comm, bool in_place);

 private:
  void call(gdrxComm_t comm, bool in_place);
  void prepare(std::uint64_t iteration);
  std::uint64_t check(gdrxComm_t comm, bool in_place, Row& row);
  void must(const Result<void>& result);
  template <class Call>
  Times time(Call call);
  std::optional<Times> time_mpi(bool in_place);

  const Options& options_;
  int rank_;
  int ranks_;
  DataKey key_;
  std::uint64_t count_;
  GuardedBuffer in_;
  GuardedBuffer out_;
  std::vector<std::byte> expected_;
  std::optional<GpuCopy> gpu_in_;  // --memory cuda
  std::optional<GpuCopy> gpu_out_;
};

}  // namespace gdrx::bench
