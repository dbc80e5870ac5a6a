// SPDX-License-Identifier: Apache-2.0
// Does GPUDirect RDMA (GDR) work on this host, how well, and what has to change? Checks over what a
// host shows in files and answers to a few probes. Both are handed in, so a copy of another host's
// files, or a test's tree, is judged the same way. Every function may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::topo {
class FileTree;
}

namespace gdrx::doctor {

/// Smallest is best.
enum class Severity : std::uint8_t {
  ok,
  unknown,  // cannot be seen from here; the finding says what would tell
  warn,     // works, with a trap in it
  slow,     // works, known to be slow
  fail,     // GDR cannot work
};
std::string_view to_string(Severity severity);
std::optional<Severity> parse_severity(std::string_view text);

struct Finding {
  std::string id;       // of the check; also the anchor in docs/gdr-setup.md
  std::string subject;  // "mlx5_0 port 1", "GPU0"; empty: the host
  Severity severity = Severity::ok;
  std::string summary;           // what is so, in a line
  std::string evidence;          // the file or call, and its value
  std::vector<std::string> fix;  // commands of this distribution; lines with '#' explain
};
/// "docs/gdr-setup.md#memlock"
std::string doc_link(const Finding& finding);

/// "mlx5_0 firmware": "28.43.1014". Hosts that are meant to be equal have equal traits.
struct Trait {
  std::string name;
  std::string value;
};

struct Report {
  std::string host;  // a line: GPUs, NICs, kernel, distribution. No host name.
  std::vector<Finding> findings;
  std::vector<std::string> not_applicable;  // ids of checks with nothing to look at here
  std::vector<Trait> traits;                // for comparing hosts
};
Severity worst(const Report& report);

/// What the CUDA driver says of one GPU.
struct CudaDevice {
  std::string bus;
  bool gdr = false;
  bool dmabuf = false;
  bool vmm_gdr = false;
  int flush_options = 0;      // bit 0: host call, bit 1: stream memory operation
  int writes_ordering = 0;    // 0 none, 100 owner, 200 all devices
  std::string dmabuf_export;  // of 2 MiB that were really allocated; empty: worked or not tried
};
struct CudaFacts {
  int driver = 0;  // 12040 is CUDA 12.4
  std::vector<CudaDevice> devices;
};

struct NvmlDevice {
  std::string bus;
  std::uint64_t bar1_bytes = 0;
  std::uint64_t bar1_free = 0;
  std::uint64_t memory_bytes = 0;
  bool mig = false;
  bool persistence = true;
};
struct NvmlFacts {
  std::string driver;
  std::vector<NvmlDevice> devices;
};

/// What libibverbs says of one device. An errno of 0: it worked.
struct VerbsDevice {
  std::string name;
  int open_errno = 0;
  int dmabuf_errno = 0;  // of registering descriptor -1: EBADF if dma-buf is supported
  int max_mtu = 0;       // of port 1, in verbs' numbers: 1 is 256 bytes, 5 is 4096
  int active_mtu = 0;
};
struct VerbsFacts {
  bool has_dmabuf = false;  // the library has ibv_reg_dmabuf_mr
  std::vector<VerbsDevice> devices;
};

/// What the kernel's data centre bridging says of one network interface.
struct Dcb {
  unsigned pfc = 0;  // priorities that are paused instead of dropped, a bit each
  std::uint64_t pauses_sent = 0;
  std::uint64_t pauses_received = 0;
  bool dscp = false;  // packets' DSCP is mapped to priorities
};

/// Memory that a NIC wrote and read back by talking to itself, with the data compared.
struct Proof {
  std::string nic;
  int port = 1;
  std::string gpu;      // bus id, or empty: host memory
  std::string way;      // "host memory", "dma-buf", "nvidia-peermem"
  std::string problem;  // empty: it worked
  int native = 0;       // errno of what failed, 0 if there is none
};

enum class Resource : std::uint8_t { memlock, nofile };
inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

/// What cannot be read from files alone. A failed Result says why there is no answer.
struct Probes {
  bool libraries_asked = true;  // false: cuda, nvml and verbs fail because this is only a copy
  std::function<std::string()> kernel_release;
  std::function<std::optional<std::uint64_t>(Resource)> limit;  // bytes or descriptors, soft
  std::function<std::optional<std::uint64_t>()> capabilities;   // effective, a bit each
  std::function<std::optional<std::uint64_t>(const std::string& mount)> file_system_bytes;
  std::function<int(const std::string& path)> open_errno;  // of opening to read and write
  std::function<std::string()> affinity;                   // "0-15,32-47", empty unknown
  std::function<std::vector<std::string>()> environment;   // NAME=VALUE
  std::function<Result<CudaFacts>()> cuda;
  std::function<Result<NvmlFacts>()> nvml;
  std::function<Result<VerbsFacts>()> verbs;
  std::function<Result<Dcb>(const std::string& interface)> dcb;
  /// By default nobody proves anything: this module moves no bytes. `gdrx doctor` sets it.
  std::function<Result<std::vector<Proof>>()> proofs;
};
/// The running system. CUDA, NVML and libibverbs are loaded when asked, never linked. The CUDA
/// question allocates 2 MiB on each GPU for a moment.
Probes live_probes();
/// As far as the files of a copied root answer; the libraries never do.
Probes file_probes(const std::string& root);

struct Host {
  std::string root = "/";  // holds sys/, proc/, dev/, etc/
  Probes probes = live_probes();
  std::shared_ptr<const topo::FileTree> files = nullptr;  // a snapshot's, instead of the root
};

struct CheckName {
  std::string_view id;
  std::string_view title;
};
std::vector<CheckName> checks();

/// Runs every check. Findings come in the order of checks(). Errors: there is no sys/ below root.
Result<Report> diagnose(const Host& host);

}  // namespace gdrx::doctor
