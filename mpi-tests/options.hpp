// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"
#include "mpi-tests/gpu_bench.hpp"
#include "mpi-tests/sister.hpp"

namespace gdrx::bench {

struct Options {
  const Sister* sister = &sisters()[0];
  std::vector<std::uint64_t> sizes;  // bytes
  std::vector<DataType> types;
  std::vector<ReduceOp> ops;
  std::vector<std::string> algorithms;
  std::string transport;
  std::string json;
  int iterations = 20;
  bool iterations_asked = false;  // by -n; else a row has fewer where they would take longer than
  double row_seconds = 5;         // this
  int warmup = 5;
  int checks = 1;
  bool vs_mpi = false;
  bool vs_nccl = false;
  bool cuda = false;
  Mode mode = Mode::blocking;
  bool explain = false;
  bool unaligned = false;
  bool registered = false;  // gdrxRegister on the buffers of each row; cuda: of each second one
  bool allocated = false;   // instead of that gdrxGpuMemAlloc
  bool out_of_place = true;
  bool in_place = true;
  int root = 0;
  double timeout = 0;
  std::uint64_t seed = 1;
  bool help = false;       // or --version: help_text is all that there is to do
  bool described = false;  // help_text is printed, even where MPI cannot start
  std::string help_text;
};

/// Whether a row of it is run.
bool fits(const Options& options, DataType type, ReduceOp op) noexcept;
/// One line of text in the error, for rank 0 to print.
Result<Options> parse_options(int argc, char** argv);

}  // namespace gdrx::bench
