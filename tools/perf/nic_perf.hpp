// SPDX-License-Identifier: Apache-2.0
// Bandwidth and latency of RDMA between two ports of this host, of one to itself, or between two
// hosts, with the data compared. Values only: needs no RDMA headers to be used.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/config.hpp"
#include "gdrx/result.hpp"

namespace gdrx::verbs {
struct VerbsTable;
}

namespace gdrx::perf {

enum class Test : std::uint8_t { write_bw, read_bw, write_lat, read_lat };
inline constexpr std::array<std::string_view, 4> kTests{"write_bw", "read_bw", "write_lat",
                                                        "read_lat"};
inline std::string_view to_string(Test test) { return kTests[static_cast<std::size_t>(test)]; }
inline std::optional<Test> parse_test(std::string_view text) {
  const auto* found = std::find(kTests.begin(), kTests.end(), text);
  if (found == kTests.end()) return std::nullopt;
  return static_cast<Test>(found - kTests.begin());
}

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
  // Between two hosts: this one's memory is this GPU's, as CUDA counts. Within one: the far memory.
  int gpu = -1;          // -1: host memory
  bool dmabuf = false;   // registered as dma-buf, not through nvidia-peermem
  double deadline = 30;  // seconds without any progress
  // Between two hosts: seconds that the other one may take for a step and say nothing meanwhile. It
  // ends a wait for one that is stopped; one that ends or vanishes breaks the connection.
  double patience = 3600;
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

/// In gigabits a second one way, and what sets it: "port rate 400 Gb/s".
struct Expectation {
  double gigabits = 0;
  std::string why;
};

struct NicPerfReport {
  NicPerfOptions options;
  std::string host;  // the other one's address; empty: within this host
  std::string from;  // "mlx5_0 port 1"
  std::string to;
  std::string gid;
  int mtu = 0;  // bytes
  std::string near_memory = "host memory";
  std::string far_memory;                // "host memory", "GPU 0000:13:00.0 by dma-buf"
  std::string gpu_bus;                   // of this host
  bool ping_pong = false;                // write_lat: seen in memory, there and back
  std::optional<Expectation> far_limit;  // of the other host, as it says
  std::vector<NicPerfRow> rows;
};
/// What this host's NIC and its way to the memory allow; `rows` are not looked at.
using Judge = std::function<std::optional<Expectation>(const NicPerfReport&)>;

/// Errors: no such device, no GPU, memory that cannot be registered, a completion with an error,
/// data that arrived changed, Errc::timeout. Uses one CPU fully while it runs.
Result<NicPerfReport> measure_nic(const std::shared_ptr<const verbs::VerbsTable>& table,
                                  const NicPerfOptions& options);
Result<NicPerfReport> measure_nic_here(const NicPerfOptions& options);

inline constexpr std::uint16_t kPerfPort = 18515;  // perftest's

/// With a gdrx that serves on `host`. Sizes, counts and the like are this side's; device, port, GID
/// and memory each side's own. `config`: the secret, the interface and the ports. Errors: as above,
/// of either side, and a secret that is not the other's.
Result<NicPerfReport> measure_with_here(const std::string& host, std::uint16_t port,
                                        const NicPerfOptions& options, const Config& config);
/// An address, without its port, and the port.
using Listening = std::function<void(const std::string& ip, std::uint16_t port)>;
/// Tells where it listens (with port 0 one of the configuration's, or the kernel chooses), serves
/// one client, and gives what was agreed on and this side's figures. Who can connect, and has the
/// secret if there is one, can have memory of this process written; nothing else.
Result<NicPerfReport> serve_here(std::uint16_t port, const NicPerfOptions& options,
                                 const Judge& judge, const Config& config,
                                 const Listening& listening);

}  // namespace gdrx::perf
