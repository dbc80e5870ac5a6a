// SPDX-License-Identifier: Apache-2.0
// The table for people, the JSON for programs. Rank 0 only.
#pragma once

#include <string>
#include <vector>

#include "gdrx/result.hpp"
#include "mpi-tests/measure.hpp"

namespace gdrx::bench {

/// What making a communicator took.
struct Creation {
  std::string algorithm;
  double ms = 0;            // of the slowest rank
  std::string description;  // gdrxCommDescribe of rank 0: the memory it holds, of hosts and GPUs
};

/// What all rows of a run have in common.
struct Where {
  int ranks = 1;
  int hosts = 1;
  std::string gpu;   // rank 0's; empty for host memory
  std::string nccl;  // its version; empty without --vs nccl
  std::vector<Creation> creations;
};

void print_head(int ranks, int hosts, const Options& options);
void print_row(const Row& row, const Options& options);
/// How far the tuner's prediction was off.
void print_measured(const Row& row);
/// The verdict, and with --vs mpi the geometric means.
void print_verdict(const std::vector<Row>& rows, int ranks, const Options& options);
/// To options.json.
Result<void> write_json(const Options& options, const std::string& command, const Where& where,
                        const std::vector<Row>& rows);

}  // namespace gdrx::bench
