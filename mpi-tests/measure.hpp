// SPDX-License-Identifier: Apache-2.0
// One row: check some calls, time the others, the same way for gdrx and for MPI.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrx/gdrx.h"
#include "mpi-tests/calls.hpp"
#include "mpi-tests/data.hpp"
#include "mpi-tests/gpu_bench.hpp"
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
  double predicted_us = 0;  // by the tuner
  bool registered = false;  // all buffers were and it was of use, as the call itself says
  bool buffers_registered = false;
  Times time;
  int calls = 0;     // that were timed
  double algbw = 0;  // GB/s
  double busbw = 0;
  std::uint64_t wrong = 0;  // elements, guards and messages too many or too few, all ranks
  std::optional<Times> mpi;
  int mpi_calls = 0;  // that were timed
  // --memory cuda with --mode stream or graph
  Mode mode = Mode::blocking;
  double host_us = 0;             // what a call costs the host, stream mode
  std::optional<bool> same_bits;  // four repeats of one inexact sum, on every rank
  std::optional<Times> nccl;
  std::optional<Times> nccl_registered;  // its buffers registered as symmetric windows
  double nccl_host_us = 0;
  std::uint64_t nccl_wrong = 0;
  /// NCCL at its better.
  std::optional<double> nccl_us() const {
    if (!nccl) return std::nullopt;
    return nccl_registered ? std::min(nccl->p50, nccl_registered->p50) : nccl->p50;
  }
};

/// What --memory cuda needs beside the buffers.
struct Gpu {
  int ordinal = 0;
  std::unique_ptr<GpuBench> bench;
  std::unique_ptr<Nccl> nccl;  // --vs nccl
};

double percentile(std::vector<double> values, double p);
Times times_of(const std::vector<double>& calls);
/// Of each call the slowest rank's time. Collective.
std::vector<double> slowest_of(const std::vector<double>& mine);

/// The buffers and the reference of one (type, op, size), shared by its rows.
class Case {
 public:
  Case(const Options& options, int rank, int ranks, DataType type, ReduceOp op, std::uint64_t bytes,
       Gpu* gpu);
  /// Rank 0 prints why calls take the algorithm that they take. Every rank calls: with --register
  /// the buffers are registered meanwhile, as that adds to what there is to choose from.
  void explain(gdrxComm_t comm);
  /// `registered`: the buffers are, while it runs.
  Row run(gdrxComm_t comm, bool in_place, bool registered);

 private:
  std::array<std::byte*, 2> buffers();  // of the calls
  Ends ends(bool in_place);             // in them
  void call(gdrxComm_t comm, const Ends& where, void* stream);
  void prepare(std::uint64_t iteration, bool in_place);
  void expect_reduced(const Piece& piece, std::byte* to);
  std::uint64_t check(gdrxComm_t comm, bool in_place, Row& row);
  void must(const Result<void>& result);
  template <class Call>
  std::vector<double> slowest_of_each(int calls, Call call);
  template <class Call>
  Times time(Call call, int& calls);
  std::optional<Times> time_mpi(bool in_place, int& calls);
  void time_on_gpu(gdrxComm_t comm, bool in_place, Row& row);
  void time_nccl(bool in_place, Row& row);
  std::optional<bool> repeats_itself(const GpuBench::Enqueue& call, bool in_place);
  GpuTimes time_calls(const GpuBench::Enqueue& call, bool in_place);
  std::uint64_t wrong_in_output();  // of all ranks

  const Options& options_;
  int rank_;
  int ranks_;
  DataKey key_;
  Place place_;
  std::uint64_t count_;
  GuardedBuffer in_;
  GuardedBuffer out_;
  std::vector<std::byte> expected_;  // all of the output's buffer
  std::optional<GpuCopy> gpu_in_;    // --memory cuda
  std::optional<GpuCopy> gpu_out_;
  Gpu* gpu_;
  std::uint64_t refreshed_ = 1'000'003;  // inputs that no other call of the row had
};

}  // namespace gdrx::bench
