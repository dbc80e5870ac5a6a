// SPDX-License-Identifier: Apache-2.0
// What a host is made of and how near its devices are: immutable values, pure functions over them.
// Nothing here touches hardware but discover(). Every function may be called from any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::topo {

inline constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// domain:bus:device.function. Domains may be wider than 16 bits (Intel VMD gives 10000:).
struct BusId {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::uint8_t function = 0;
  auto operator<=>(const BusId&) const = default;
};

/// Takes sysfs's "0000:3b:00.0", NVML's "00000000:3B:00.0" and the short "3b:00.0".
std::optional<BusId> parse_bus_id(std::string_view text);
std::string to_string(const BusId& bus);

/// A PCI link as far as it is known: lanes and rate, or only their product. 0 is "not known".
struct Link {
  double gigatransfers = 0;  // per lane: 2.5, 5, 8, 16, 32, 64
  int width = 0;             // lanes
  double total = 0;          // GB/s, from sources that give no more than that
};
/// GB/s one way after line coding, before packet overhead.
std::optional<double> gbytes(const Link& link);

enum class NodeKind : std::uint8_t {
  root,        // a host bridge: sysfs's "pci0000:3a"
  bridge,      // one bridge function: a root port, or an up- or downstream port of a switch
  pci_switch,  // a whole switch as one node, from sources that do not tell its ports apart
  device,
};

/// One thing on the PCI tree. `link` is the link that sysfs shows at this function: to the device
/// below for a root or downstream port, to the port above for everything else.
struct PciNode {
  std::string name;  // unique: a bus id, or "pci0000:3a"
  NodeKind kind = NodeKind::device;
  std::size_t parent = kNone;
  std::optional<BusId> bus;
  std::uint32_t class_code = 0;  // 24 bits, 0 unknown
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::uint16_t subsystem_vendor = 0;
  std::uint16_t subsystem_device = 0;
  Link link;  // as trained now, or the best both ends can do where that is known
  int numa = -1;
  int iommu_group = -1;
  std::string cpus;   // "0-15": the CPUs that the kernel calls local to it, empty unknown
  bool exact = true;  // false for a root that stands for "somewhere below this CPU"
  std::optional<BusId> physical_function;  // of an SR-IOV virtual function
};

struct Gpu {
  std::string name;          // "GPU0", by bus id; given by Topology::make
  std::size_t node = kNone;  // kNone: its place is not known
  std::string model;
  int sm = 0;         // compute capability times ten, 0 unknown
  int c2c_links = 0;  // NVLink-C2C to the CPU, as on Grace
  double c2c_gbytes = 0;
  std::string uuid = {};  // "GPU-...", empty unknown
};

struct Nic {
  std::string name;              // "mlx5_0"
  std::size_t node = kNone;      // kNone: virtual (soft-RoCE), or its place is not known
  std::size_t dma_node = kNone;  // Data Direct: the function that really moves the bytes
  int port = 0;                  // 0 unknown
  double gigabits = 0;           // port rate, 0 unknown
  std::string link_layer;        // "InfiniBand", "Ethernet" or empty
  bool is_virtual = false;       // no PCI device behind it
  std::optional<bool> active = std::nullopt;  // a port is up; nothing: the source does not say
};

/// `count` NVLinks of one GPU, to another GPU or (peer == kNone) to NVSwitches.
struct NvLink {
  std::size_t gpu = kNone;  // in Parts: a node; in Topology: an index of gpus()
  std::size_t peer = kNone;
  int count = 0;
  double gbytes = 0;  // per link and direction, 0 unknown
  bool xgmi = false;  // a link of AMD's
};

struct NumaNode {
  int id = -1;
  int package = -1;
  std::string cpus;                     // "0-15,32-47", empty unknown
  std::vector<int> distances;           // by position among all nodes in order of id, empty unknown
  std::vector<std::string> cores = {};  // each core's CPUs, "0,32"; empty unknown
};

/// What a reader gathers, in any order.
struct Parts {
  std::string source;  // "this host", or the kind and name of a file
  std::vector<PciNode> nodes;
  std::vector<Gpu> gpus;
  std::vector<Nic> nics;
  std::vector<NvLink> nvlinks;
  std::vector<NumaNode> numa;
  std::vector<std::string> notes;  // one line each: what is missing, and why
  bool nvlink_known = false;       // the source would have told
  bool in_vm = false;
};

/// Which device of a Topology: GPUs first, then NICs.
enum class DeviceId : std::uint32_t {};
constexpr std::size_t index(DeviceId id) noexcept { return static_cast<std::size_t>(id); }

class Topology {
 public:
  /// Checks the parts (no cycle, no duplicate, bounded depth) and brings them into the one order
  /// that does not depend on enumeration: nodes and GPUs by bus id, NICs by name.
  static Result<Topology> make(Parts parts);

  const std::string& source() const noexcept { return parts_.source; }
  const std::vector<PciNode>& nodes() const noexcept { return parts_.nodes; }
  const std::vector<Gpu>& gpus() const noexcept { return parts_.gpus; }
  const std::vector<Nic>& nics() const noexcept { return parts_.nics; }
  const std::vector<NvLink>& nvlinks() const noexcept { return parts_.nvlinks; }
  const std::vector<NumaNode>& numa() const noexcept { return parts_.numa; }
  const std::vector<std::string>& notes() const noexcept { return parts_.notes; }
  const Parts& parts() const noexcept { return parts_; }
  bool nvlink_known() const noexcept { return parts_.nvlink_known; }
  /// A virtual machine that shows devices on flat virtual buses: PCI classes say nothing there.
  bool flattened() const noexcept { return flattened_; }
  /// NUMA nodes are told, PCIe switches are not: PHB and NODE say no more than "one NUMA node".
  /// What most clouds show.
  bool hides_switches() const noexcept { return hides_switches_; }

  std::size_t devices() const noexcept { return parts_.gpus.size() + parts_.nics.size(); }
  DeviceId gpu(std::size_t i) const noexcept { return DeviceId(i); }
  DeviceId nic(std::size_t i) const noexcept { return DeviceId(parts_.gpus.size() + i); }
  bool is_gpu(DeviceId id) const noexcept { return index(id) < parts_.gpus.size(); }
  const std::string& name(DeviceId id) const;
  std::size_t node(DeviceId id) const;  // kNone where it has none
  /// By "GPU0", "mlx5_2", "NIC3" (the NIC's number in the matrix) or bus id.
  Result<DeviceId> find(std::string_view text) const;

  int numa_of(std::size_t node) const;  // the node's own, or of the nearest bridge above; -1
  /// The node itself if it has CPUs; of a GPU's memory (Grace), the nearest node that has some.
  int numa_with_cpus(int numa) const;
  int package_of(int numa) const;       // -1 unknown
  std::string cpus_of(int numa) const;  // empty unknown
  /// CPUs near a node: of its NUMA node, or what the kernel says of the device itself.
  std::string cpus_near(std::size_t node) const;
  /// The NUMA node of those CPUs; -1.
  int numa_near(std::size_t node) const;
  int nvlinks_between(std::size_t gpu_a, std::size_t gpu_b) const;

 private:
  Parts parts_;
  bool flattened_ = false;
  bool hides_switches_ = false;
};

/// nvidia-smi's classes, nearest first.
enum class PathClass : std::uint8_t { self, nvlink, pix, pxb, phb, node, sys, unknown };
std::string_view to_string(PathClass path);

/// NCCL's path types that a host can have, nearest first (2.30 in graph/topo.h's order).
enum class NcclClass : std::uint8_t { loc, nvl, c2c, pix, pxb, p2c, phb, sys, unknown };
std::string_view to_string(NcclClass path);

struct Path {
  PathClass smi = PathClass::unknown;   // what `nvidia-smi topo -m` prints
  PathClass pci = PathClass::unknown;   // what `nvidia-smi topo -mp` prints: NVLink hidden
  PathClass near = PathClass::unknown;  // what the bytes see: bridges inside a NIC do not count
  NcclClass nccl = NcclClass::unknown;
  bool certain = true;        // false: the source cannot tell `pci` from the next class
  bool same_package = false;  // of a SYS path: another NUMA node of the same package
  int nvlinks = 0;
  bool xgmi = false;                 // these are links of AMD's
  int bridges = 0;                   // PCI bridge functions touched
  std::optional<double> bottleneck;  // GB/s; socket links are not in it, their speed is not known
  std::string limit;                 // which link that is
  std::string nccl_reason;           // why NCCL's class differs, empty if it does not
  std::string remark;                // what else a reader has to know, empty if nothing
};
Path path(const Topology& topology, DeviceId a, DeviceId b);

/// "X", "NV18", "PIX", ...; "PHB?" where not certain, "UNK" where not known.
std::string cell(const Path& path, bool pci_only);

struct Hop {
  std::string what;              // "PCIe switch 0000:3b:00.0 (upstream port)"
  std::optional<double> gbytes;  // of the link that leads to the next hop
};
/// The path from a to b, hop by hop, both ends included.
std::vector<Hop> hops(const Topology& topology, DeviceId a, DeviceId b);

/// Lexicographic: class, bottleneck, bridges. Smaller is nearer.
struct Cost {
  int rank = 0;
  std::int64_t slowness = 0;
  int bridges = 0;
  auto operator<=>(const Cost&) const = default;
};
Cost cost(const Topology& topology, const Path& path);

/// The GPU through which NCCL may reach `nic` instead (PXN): an NVLink neighbour that is PXB or
/// nearer to it, where the GPU itself is not. The nearest one; kNone if there is none.
std::size_t pxn_proxy(const Topology& topology, std::size_t gpu, std::size_t nic);

/// NIC indices for GPU `gpu`, nearest first, ports that are down last, ties in the order of nics().
std::vector<std::size_t> nearest_nics(const Topology& topology, std::size_t gpu);

struct RailChoice {
  std::size_t nic = kNone;
  Path path;
  std::string reason;   // one line for a person
  std::string quality;  // what GPUDirect RDMA may be expected to do over it
};
struct RailMap {
  std::vector<std::vector<RailChoice>> of_gpu;  // at least one each, unless there are no NICs
  std::vector<int> load;                        // GPUs per NIC
};
/// Each GPU gets the NICs at its smallest cost; among equal ones the load differs by at most one.
/// NICs that are nobody's nearest stay unused, and those whose port is down where others are up.
RailMap rail_map(const Topology& topology);

/// GPU indices in an order whose neighbours, the last and the first too, are near each other.
std::vector<std::size_t> ring_order(const Topology& topology);

/// parent[gpu], kNone at the root: a tree of near links, two children at most.
std::vector<std::size_t> tree_order(const Topology& topology, std::size_t root);

class FileTree;  // a host's files in memory: see gdrx/snapshot.hpp

/// Where to look: a file-system root that holds sys/ and proc/, and whether to ask NVML.
struct HostSource {
  std::string root = "/";                           // with `files`: only the name to show
  bool nvml = true;                                 // only ever asked when root is "/"
  std::shared_ptr<const FileTree> files = nullptr;  // instead of the root
};
Result<Topology> discover(const HostSource& source);

/// hwloc XML, NCCL topology XML or a cluster description: told apart by what is in it.
/// `source` is the name to show.
Result<Topology> parse(std::string_view text, std::string source);
Result<Topology> parse_hwloc_xml(std::string_view text, std::string source);
Result<Topology> parse_nccl_xml(std::string_view text, std::string source);

/// Equal hosts, described in words.
struct Cluster {
  int hosts = 1;
  Topology host;
};
/// "2 hosts x 8 H200, one 400 Gb/s NIC a GPU"; "4 hosts x 4 A100, 2 200 Gb/s NICs".
Result<Cluster> parse_cluster(std::string_view text);

/// A copy with one device (by any name that find() knows) below another bridge or beside another
/// device: `move mlx5_1 under 0000:3b:00.0`, `move mlx5_1 beside GPU3`.
Result<Topology> what_if(const Topology& topology, std::string_view sentence);

}  // namespace gdrx::topo
