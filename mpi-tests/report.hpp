// SPDX-License-Identifier: Apache-2.0
// The table for people, the JSON for programs. Rank 0 only.
#pragma once

#include <string>
#include <vector>

#include "gdrx/result.hpp"
#include "mpi-tests/measure.hpp"

namespace gdrx::bench {

void print_head(int ranks, int hosts, const Options& options);
void print_row(const Row& row, const Options& options);
/// How far the tuner's prediction was off.
void print_measured(const Row& row);
/// The verdict, and with --vs mpi the geometric means.
void print_verdict(const std::vector<Row>& rows, int ranks);
/// `gpu`: the name of rank 0's, empty for host memory.
Result<void> write_json(const std::string& path, const std::string& command, int ranks, int hosts,
                        const std::string& gpu, const std::vector<Row>& rows);

}  // namespace gdrx::bench
