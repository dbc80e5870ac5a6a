// SPDX-License-Identifier: Apache-2.0
// Bandwidth and latency of RDMA between two ports of this host, or of one to itself, with the data
// compared. Values only: needs no RDMA headers to be used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::verbs {
struct VerbsTable;
}

namespace gdrx::perf {

enum class Test : std::uint8_t { write_bw, read_bw, write_lat, read_lat };

struct NicPerfOptions {
  Test test = Test::write_bw;
  std::string device;     // empty: the first that is up
  std::string to;         // empty: the same one
  std::uint8_t port = 0;  // 0: the first that is up
  std::optional<std::uint32_t> gid_index;
  int mtu = 0;                     // bytes; 0: the port's
  std::vector<std::size_t> sizes;  // bytes of a message
  int iterations = 0;              // 0: 1000 for latency, 5000 for bandwidth
  double duration = 0;             // seconds of each size, instead of iterations
  int depth = 128;                 // messages on their way
  int qps = 1;
  bool both_ways = false;
  std::uint8_t timeout = 14;  // 4.096 us * 2^timeout
  std::uint8_t service_level = 0;
  std::uint8_t traffic_class = 0;
  int gpu = -1;          // the far memory is this GPU's, as CUDA counts; -1: host
  bool dmabuf = false;   // registered as dma-buf, not through nvidia-peermem
  double deadline = 30;  // seconds without any progress
};

/// Of one size. Bandwidth in 10^9 bits a second and direction, latency in microseconds.
struct NicPerfRow {
  std::size_t bytes = 0;
  std::uint64_t iterations = 0;
  double gigabits = 0;
  double messages = 0;  // a second
  double least = 0;
  double typical = 0;  // the median
  double mean = 0;
  double p99 = 0;
  double p999 = 0;
  double most = 0;
};

struct NicPerfReport {
  NicPerfOptions options;
  std::string from;  // "mlx5_0 port 1"
  std::string to;
  std::string gid;
  int mtu = 0;             // bytes
  std::string far_memory;  // "host memory", "GPU 0000:13:00.0 by dma-buf"
  std::string gpu_bus;
  std::vector<NicPerfRow> rows;
};

/// Errors: no such device, no GPU, memory that cannot be registered, a completion with an error,
/// data that arrived changed, Errc::timeout. Uses one CPU fully while it runs.
Result<NicPerfReport> measure_nic(const std::shared_ptr<const verbs::VerbsTable>& table,
                                  const NicPerfOptions& options);
Result<NicPerfReport> measure_nic_here(const NicPerfOptions& options);

}  // namespace gdrx::perf
