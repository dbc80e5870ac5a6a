// SPDX-License-Identifier: Apache-2.0
// A simulated network of RDMA NICs behind the verbs table and ibv_context::ops. Deterministic: one
// thread, a virtual clock that moves with step(), and a seed that decides every delay and fault.
// Live: threads, the real clock, no delays; the networks of several processes can be joined.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "gdrx/clock.hpp"
#include "tests/fabric/bridge.hpp"
#include "tests/fabric/random.hpp"
#include "transport/memory/gpu_calls.hpp"
#include "transport/verbs/verbs_table.hpp"

namespace gdrx::sim {

enum class Fault : std::uint8_t {
  delay,         // a packet takes far longer than its neighbours
  drop_packet,   // lost: sent again after the time-out
  drop_ack,      // it landed, and the sender does not know
  ack_blackout,  // no acknowledgement of a QP for long: it fails, and everything had landed
  hold,          // stays in a switch until after the sender has given up: a ghost
  scatter,       // bytes of a write land in any order before it completes
  rnr,           // the receiver says that it is not ready
  drop_datagram,
  twice_datagram,   // arrives twice, the second time late
  late_datagram,    // arrives when its sender has repeated it often, or gone on to another epoch
  late_completion,  // of the CQ: visible long after the bytes are
  link_flap,        // a port goes down, shortly
  outage,           // a port goes down for longer than the QPs retry
  blackout,         // all ports of a host go down, shortly
  dark,             // all ports of all hosts go down, and come back each at its own time
  qp_fatal,         // a QP goes to error by itself
  device_fatal,     // a NIC dies for good
  unflushed,        // what is posted on a QP in error never completes, as with soft-RoCE
  create_qp_fails,  // out of resources, for the moment
  post_fails,       // ibv_post_send returns ENOMEM
  gpu_hold,         // what was written to a GPU is in flight until a read of the NIC pushes it
  slow_host,        // a process does not poll for a while (the harness's)
  stall,            // the same, for many heartbeats and longer than quiescing waits (the harness's)
  repeat,           // a NIC that does such things delivers again, with bytes or without, what its
                    // sender has no acknowledgement of
  verb_fails,       // one of the verbs is refused at its n-th call, once or from then on
};
inline constexpr std::size_t kFaults = 25;
std::string_view to_string(Fault fault) noexcept;

/// What can be refused. Not what closes: a verb that does not close is a defect of its driver, and
/// an object that lives on is beyond anybody's reach. Nor ibv_query_gid: entries that cannot be
/// read are nothing unusual.
enum class Verb : std::uint8_t {
  get_device_list,
  open_device,
  query_device,
  set_nonblocking,
  query_port,
  alloc_pd,
  reg_mr,
  reg_dmabuf_mr,
  create_cq,
  create_qp,
  modify_qp,
  create_ah,
  post_send,
  post_recv,
  poll_cq,
};
inline constexpr std::size_t kVerbs = 15;
std::string_view to_string(Verb verb) noexcept;

struct VerbFailure {
  Verb verb{};
  std::uint64_t nth = 1;    // call of the host
  std::uint64_t times = 1;  // so many calls from that one on
  int error = 12;           // ENOMEM
};

class VirtualClock final : public Clock {
 public:
  Instant now() const noexcept override { return now_; }
  void advance_to(Instant to) noexcept { now_ = std::max(now_, to); }

 private:
  Instant now_{std::chrono::seconds(1)};
};

struct NicSettings {
  int nics = 1;
  bool infiniband = false;
  int max_inline = 256;
  std::uint32_t max_message = 1U << 30;    // of one work request
  int first_subnet = 0;                    // NIC i is in subnet first_subnet + i, modulo the NICs
  bool routed = true;                      // between subnets
  bool dma_buf = true;                     // its driver registers dma-bufs
  std::uint32_t ece = 0;                   // options its provider offers; 0: it knows no ECE
  std::vector<std::string> pci_folders{};  // of the NICs in sysfs; none: they are nowhere
  bool peermem = true;           // nvidia-peermem is loaded: ibv_reg_mr takes a GPU's memory
  bool repeats = false;          // Fault::repeat is for it
  bool soft = false;             // it says that it is soft-RoCE
  std::uint32_t unreliable = 0;  // bit a NIC: it has no reliable QPs, as some clouds' have none
};

struct Nic;
struct Qp;
struct Packet;

class Network {
 public:
  enum class Mode : std::uint8_t { deterministic, live };
  explicit Network(Mode mode, std::uint64_t seed = 1);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Live: hosts made from here on are in one network with those of that name in other processes.
  void join(std::string name) { joined_ = std::move(name); }
  /// A host with NICs "sim0", "sim1" and so on, and the verbs that see them.
  /// Of a joined network, as long as the verbs exist. Nothing where the network has no place.
  std::shared_ptr<const verbs::VerbsTable> add_host(const NicSettings& settings = {});

  /// Whose GPUs there are: the driver's at first.
  void set_gpu(const cuda::GpuCalls& gpu) noexcept { gpu_ = &gpu; }

  const Clock& clock() const noexcept;
  Instant now() const noexcept { return clock().now(); }
  /// Deterministic: moves the clock by `by` at most, to what happens next. False: nothing is left.
  void run_for(Duration by);
  Random& random() noexcept { return random_; }

  // Faults. Probabilities are per opportunity; zero everywhere at first.
  void set_fault(Fault fault, double probability) noexcept;
  void stop_faults() noexcept;  // and all ports come back, but those of dead NICs
  std::uint64_t fired(Fault fault) const noexcept {
    return fired_[static_cast<std::size_t>(fault)];
  }
  /// Of that host, which need not be there yet. One failure a host.
  void fail_verb(int host, const VerbFailure& failure) { failures_[host] = {failure, 0}; }
  /// 0, or the errno with which this call of the verb is refused.
  int refused(int host, Verb verb) noexcept;
  void count(Fault fault) noexcept { ++fired_[static_cast<std::size_t>(fault)]; }
  bool draw(Fault fault) noexcept;
  void set_port(int host, int nic, bool up);
  void kill_nic(int host, int nic);
  /// Its port has another GID and LID from now on, and nothing finds it by the old ones.
  void move_port(int host, int nic);
  void cut(int host, int nic);        // behind the first switch: its port stays active
  void break_qps(int host, int nic);  // all its connected QPs go to error
  /// What the connected QPs of a host have agreed on, each once.
  std::set<std::uint32_t> agreed_ece(int host);
  /// What the reliable QPs of a host allow to their peers, each once, and how many there are.
  std::multiset<unsigned> qp_access(int host);
  /// With which packet numbers QPs began to send, in the order in which they did.
  const std::vector<std::uint32_t>& first_psns() const noexcept { return first_psns_; }
  int hosts() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(hosts_.size());
  }
  int nics(int host) const {
    return static_cast<int>(hosts_[static_cast<std::size_t>(host)].size());
  }

  std::uint64_t trace_hash() const noexcept { return hash_; }
  /// Objects that verbs made and nobody destroyed.
  std::size_t live_objects() const noexcept { return objects_; }
  std::uint64_t bytes_sent(int host, int nic);
  std::uint64_t bytes_moved() const noexcept { return bytes_moved_; }
  /// Work requests that QPs took, and bytes of those that were writes with immediate.
  std::uint64_t posted(ibv_wr_opcode opcode) const noexcept {
    return posted_[static_cast<std::size_t>(opcode)];
  }
  std::uint64_t bytes_told() const noexcept { return bytes_told_; }

 private:
  friend struct Verbs;      // the control verbs
  friend struct Transport;  // what QPs do
  struct Event {
    Instant at;
    std::uint64_t order = 0;
    std::function<void()> run;
    bool operator>(const Event& other) const noexcept {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  void schedule(Duration in, std::function<void()> what);
  void run_due(Instant until);
  Result<int> claim_place();
  void release_place(int host, int place);
  void deliver(const Frame& frame, std::vector<std::byte> payload);
  void trace(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0) noexcept;
  bool live() const noexcept { return mode_ == Mode::live; }

  Mode mode_;
  const cuda::GpuCalls* gpu_ = &cuda::gpu_calls();
  VirtualClock virtual_clock_;
  Random random_;
  std::recursive_mutex mutex_;  // of the whole network; live only
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  std::array<double, kFaults> probability_{};
  std::array<std::uint64_t, kFaults> fired_{};
  std::map<int, std::pair<VerbFailure, std::uint64_t>> failures_;  // by host, with calls so far
  std::uint64_t hash_ = 14695981039346656037ULL;
  std::size_t objects_ = 0;
  std::uint64_t bytes_moved_ = 0;
  std::array<std::uint64_t, 16> posted_{};
  std::uint64_t bytes_told_ = 0;
  std::vector<std::uint32_t> first_psns_;
  std::vector<std::vector<std::unique_ptr<Nic>>> hosts_;
  std::map<std::uint32_t, Qp*> qps_;  // by number, of all NICs
  std::uint32_t next_qp_ = 0x11;
  std::uint32_t next_key_ = 0x1000;
  std::string joined_;              // the name of the network of several processes
  std::unique_ptr<Bridge> bridge_;  // while there are hosts; its thread calls deliver()
  int bridged_ = 0;                 // hosts
};

}  // namespace gdrx::sim
