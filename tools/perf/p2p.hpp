// SPDX-License-Identifier: Apache-2.0
// What GPUs of one host reach of each other, and how fast: measured by copying and by kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::perf {

struct P2pOptions {
  std::size_t bytes = std::size_t{256} << 20;  // of a transfer; a multiple of 4096
  int iterations = 10;
  int blocks = 64;  // of 512 threads, for kernel stores and loads
};

/// From one GPU to another. Bandwidths are GB/s (10^9) in each direction; 0: not measured.
struct P2pPair {
  bool access = false;   // kernels of the first may use the second's memory
  bool atomics = false;  // and do atomic operations on it
  std::string problem;   // why something was not measured, or what was wrong; empty: nothing
  double copy = 0;       // cuMemcpyPeerAsync, this way only
  double copy_both = 0;  // both ways at once
  double store = 0;      // stores of the first's kernel
  double store_both = 0;
  double load = 0;  // loads of the first's kernel, from the second
  double load_both = 0;
  double round_trip = 0;  // microseconds of a flag there and back, by kernels
};

struct P2pGpu {
  std::string bus;
  std::string model;
  int sm = 0;  // compute capability times ten
};

struct P2pReport {
  P2pOptions options;
  std::vector<P2pGpu> gpus;
  std::vector<std::vector<P2pPair>> pairs;  // [from][to]
  double copy_all = 0;                      // all GPUs to all peers at once: out of each GPU
  double store_all = 0;
};

/// Of all GPUs that this process sees; takes about a second a pair. The data of each kind of
/// transfer is compared. Errc::unsupported where there is no CUDA or no GPU.
Result<P2pReport> measure_p2p(const P2pOptions& options);

}  // namespace gdrx::perf
