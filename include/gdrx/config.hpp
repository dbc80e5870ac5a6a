// SPDX-License-Identifier: Apache-2.0
// Every environment variable with its default, unit and help text, in one table.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/log.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

/// A range of addresses, as the 16 bytes of a GID.
struct IbRange {
  std::array<std::uint8_t, 16> prefix{};
  int bits = 0;
  std::string text;
};

/// What NCCL's variables for InfiniBand say, so that a tuned cluster works unchanged.
struct IbConfig {
  std::string hca;                // NCCL_IB_HCA; GDRX_HCA comes first
  int gid_index = -1;             // NCCL_IB_GID_INDEX; -1: chosen
  int traffic_class = 0;          // NCCL_IB_TC
  int service_level = 0;          // NCCL_IB_SL
  int timeout = 16;               // NCCL_IB_TIMEOUT: 4.096 us * 2^timeout
  int retries = 7;                // NCCL_IB_RETRY_CNT
  int pkey_index = 0;             // NCCL_IB_PKEY
  int qps = 1;                    // NCCL_IB_QPS_PER_CONNECTION
  bool ipv6 = false;              // NCCL_IB_ADDR_FAMILY
  IbRange range;                  // NCCL_IB_ADDR_RANGE
  int roce_version = 2;           // NCCL_IB_ROCE_VERSION_NUM
  int adaptive_routing = -1;      // NCCL_IB_ADAPTIVE_ROUTING; -1: on InfiniBand
  int adaptive_threshold = 8192;  // NCCL_IB_AR_THRESHOLD, bytes
  int relaxed_ordering = 2;       // NCCL_IB_PCI_RELAXED_ORDERING; 2: where it can be
  bool ece = true;                // NCCL_IB_ECE_ENABLE
  bool dma_buf = true;            // NCCL_DMABUF_ENABLE
};

/// How NICs are to reach GPU memory: as well as they can, or in one way alone.
enum class GpuDirect : std::uint8_t { automatic, dma_buf, peermem, staged };

/// The ports of gdrx's own listeners; none given: the kernel chooses.
struct PortRange {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  bool given() const noexcept { return first != 0; }
};

struct Config {
  bool net_strict = false;                         // GDRX_NET_STRICT: the NCCL net plugin's
  bool net_stats = true;                           // GDRX_NET_STATS
  bool net_gpu = false;                            // GDRX_NET_GPU
  int net_copy_threads = 0;                        // GDRX_NET_COPY_THREADS; 0: chosen
  int net_nap = 500;                               // GDRX_NET_NAP, microseconds
  int net_speed = 0;                               // GDRX_NET_SPEED, Mbit/s; 0: what is found
  std::chrono::milliseconds net_stall{30'000};     // GDRX_NET_STALL, seconds
  int nccl_version = 22809;                        // GDRX_NCCL_VERSION: libgdrx-nccl.so's
  std::string mpi = "auto";                        // GDRX_MPI: libgdrx-coll-ompi.so's
  std::string algo = "auto";                       // GDRX_ALGO
  std::string transport = "auto";                  // GDRX_TRANSPORT
  std::string socket_ifname;                       // GDRX_SOCKET_IFNAME
  std::string secret_file;                         // GDRX_SECRET_FILE
  PortRange port_range;                            // GDRX_PORT_RANGE
  std::string nccl_socket_ifname;                  // NCCL_SOCKET_IFNAME; the plugin's
  std::string host_id;                             // GDRX_HOST_ID
  std::string module_path;                         // GDRX_MODULE_PATH
  bool tcp_plain = false;                          // GDRX_TCP_PLAIN
  std::string ucx_tls;                             // GDRX_UCX_TLS
  bool ucx_tcp = false;                            // no variable: for measuring beside it alone
  std::string hca;                                 // GDRX_HCA
  std::string gid_index;                           // GDRX_GID_INDEX
  IbConfig ib;                                     // NCCL_IB_*
  Level log_level = Level::warn;                   // GDRX_LOG
  std::chrono::milliseconds timeout{300'000};      // GDRX_TIMEOUT, seconds
  std::chrono::milliseconds init_timeout{60'000};  // GDRX_INIT_TIMEOUT, seconds
  std::chrono::milliseconds heartbeat{1'000};      // GDRX_HEARTBEAT, milliseconds
  std::chrono::milliseconds silence{30'000};       // GDRX_SILENCE, seconds
  std::chrono::milliseconds peer_timeout{10'000};  // GDRX_PEER_TIMEOUT, seconds
  Bytes verbs_staging = Bytes{32} << 20;           // GDRX_VERBS_STAGING, bytes
  GpuDirect gpu_direct = GpuDirect::automatic;     // GDRX_GPU_DIRECT
  bool gpu_flush = false;                          // GDRX_GPU_FLUSH: always
  Bytes slice = 0;                                 // GDRX_SLICE, bytes; 0: chosen
  Bytes arena_block = 256 * 1024;                  // GDRX_ARENA_BLOCK, bytes
  int cma = 1;                                     // GDRX_CMA; 0: never, 1: where faster, 2: always
  int lanes = 0;                                   // GDRX_LANES; 0: chosen
  bool shared_memory = true;                       // GDRX_SHM
  bool gpu = true;                                 // GDRX_GPU
  int gpu_blocks = 0;                              // GDRX_GPU_BLOCKS; 0: all but one
  Bytes gpu_staging = Bytes{1} << 20;              // GDRX_GPU_STAGING, bytes
  bool reproducible = false;                       // GDRX_REPRODUCIBLE
  std::string trace;                               // GDRX_TRACE
  std::string tune_file;                           // GDRX_TUNE_FILE
  std::string thread_cpus = "auto";                // GDRX_THREAD_CPUS
};

/// One row of the table: what `gdrx config` prints.
struct Variable {
  std::string_view env;
  std::string_view unit;
  std::string_view help;
  std::function<Result<void>(Config&, std::string_view text)> parse;
  std::function<std::string(const Config&)> print;
};

std::span<const Variable> config_table();

/// Environment as values, "NAME=value" each, so that tests hand one in.
using Environment = std::vector<std::string>;
Environment process_environment();  // the only reader of the process's environment

struct LoadedConfig {
  Config config;
  std::vector<std::string> warnings;  // one line an unknown GDRX_* variable, with the nearest name
};

/// The program has more rights than who started it (set-user-id, file capabilities; AT_SECURE).
bool process_is_privileged() noexcept;

/// Defaults overridden by the environment. A known variable with a bad value is an error that names
/// the variable, the value and what is allowed. Of a privileged process no variable names a file or
/// a folder: those are ignored, with a warning each.
Result<LoadedConfig> load_config(const Environment& environment,
                                 bool privileged = process_is_privileged());

/// The known name nearest to `name` by edit distance, if one is near enough to be a typing error.
std::optional<std::string_view> nearest_name(std::string_view name,
                                             std::span<const std::string_view> known);

}  // namespace gdrx
