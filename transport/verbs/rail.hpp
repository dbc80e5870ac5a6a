// SPDX-License-Identifier: Apache-2.0
// One port of a NIC of this host: its context, domain, completion queues, and the datagram QP over
// which devices talk about their port pairs.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gdrx/clock.hpp"
#include "gdrx/log.hpp"
#include "transport/verbs/buffer.hpp"
#include "transport/verbs/helper.hpp"
#include "transport/verbs/options.hpp"
#include "transport/verbs/queue_pair.hpp"
#include "transport/verbs/wire.hpp"

namespace gdrx::verbs {

/// Asking again for what was refused with this errno is of no use.
constexpr bool refused_for_good(int error) noexcept {
  return error == EOPNOTSUPP || error == EINVAL || error == EPERM;
}

/// A reliable QP and the completion queue that has room for it.
struct RailQp {
  std::unique_ptr<QueuePair> qp;
  std::size_t queue = 0;
};

class Rail final : private EventSink {
 public:
  static Result<std::unique_ptr<Rail>> open(std::shared_ptr<Context> context, std::uint8_t port,
                                            const Options& options, std::uint32_t qkey);
  ~Rail() { context_->forget(*this); }
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  const RailAddress& address() const noexcept { return address_; }
  const char* name() const noexcept { return address_.name.data(); }
  const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
  /// Work requests that a write of so many bytes takes: a NIC has a longest one (max_msg_sz).
  std::uint32_t requests_for(Bytes bytes) const noexcept {
    return bytes <= piece_ ? 1 : static_cast<std::uint32_t>((bytes - 1) / piece_of(bytes) + 1);
  }
  /// So much of a write of `bytes` goes in one request: what the NIC takes, or suits its driver.
  Bytes piece_of(Bytes bytes) const noexcept {
    return std::clamp((bytes + kMostPieces - 1) / kMostPieces, piece_, longest_);
  }
  Bytes longest_write() const noexcept { return longest_; }
  /// Its NIC's in sysfs, links resolved; empty: not known.
  const std::string& pci_folder() const noexcept { return pci_folder_; }
  /// It may deliver again what it has delivered: known of soft-RoCE, or seen.
  bool repeats() const noexcept { return repeats_; }
  void set_repeats() noexcept { repeats_ = true; }
  /// Processors do its work, and may be late with it.
  bool soft() const noexcept { return soft_; }
  /// Of its QPs, as ibv_qp_attr::timeout.
  std::uint8_t timeout() const noexcept {
    return soft_ ? std::max(options_.timeout, options_.soft_timeout) : options_.timeout;
  }
  /// Switches may send its packets on any way: what is long goes by writes that need no order.
  bool adaptive() const noexcept { return adaptive_; }
  bool port_up() const noexcept { return port_up_ && !dead_; }
  bool dead() const noexcept { return dead_; }  // the NIC said so: for good
  /// A completion queue is unusable: nothing that completed there will be known.
  void set_broken() noexcept { dead_ = broken_ = true; }
  bool broken() const noexcept { return broken_; }
  /// Counts what may have been written over this rail, for those who have to flush it.
  void count_landed() noexcept { ++landed_; }
  std::uint64_t landed() const noexcept { return landed_; }

  Result<RailQp> make_qp(const QpLimits& limits);
  void destroy_qp(RailQp& qp, const QpLimits& limits) noexcept;
  /// A QP that is its own peer, with completions of its own.
  Result<std::unique_ptr<QueuePair>> make_loopback(std::shared_ptr<CompletionQueue> queue,
                                                   const QpLimits& limits) const;
  ibv_ah_attr route_to(const RailAddress& peer) const noexcept;

  /// Fills from the completion queue whose turn it is, or from all; of a dead NIC, too: what it
  /// completed before is in our memory. Negative: one of them is broken.
  int poll(std::span<ibv_wc> into, bool all) noexcept;
  /// The last poll() of all found the queues empty behind what it returned.
  bool quiet() const noexcept { return quiet_; }

  /// Best effort: dropped when the ring is full, as the network may drop it. Never blocks. What
  /// was refused is kept for refusals().
  void send(const AddressHandle& to, const RailAddress& peer, const Control& message) noexcept;
  /// The errno with which the last datagram was refused, or 0.
  int send_error() const noexcept { return send_error_; }
  /// Verbs that are refused now, each with its reason; mostly empty.
  std::string refusals() const;
  /// The next valid datagram, if any.
  bool receive(Control& message) noexcept;
  /// Reads what the NIC told about itself: a system call. What it takes to look closer, the helper
  /// does. Where events are hidden, a look a second tells as much.
  void pump_events(const Log& log, Instant now, Helper& helper);
  /// QPs that the NIC has said to have failed since the last call: numbers, of which some may be
  /// of others.
  std::vector<std::uint32_t> take_failed_qps() noexcept { return std::exchange(failed_qps_, {}); }

 private:
  static constexpr Bytes kMostPieces = 64;  // of one fragment; a QP takes kLongestFragment requests
  struct Shard {
    std::shared_ptr<CompletionQueue> queue;
    std::uint32_t used = 0;
  };
  Rail(std::shared_ptr<Context> context, std::uint8_t port, const Options& options)
      : context_(std::move(context)), port_(port), options_(options) {
    context_->listen(*this);
  }
  struct Look {
    Result<ibv_port_attr> port;
    std::optional<std::vector<Gid>> gids;
  };
  Result<Shard*> add_shard(std::uint32_t need);
  void on_event(const ibv_async_event& event) override;
  bool has_queue(const ibv_cq* queue) const noexcept;
  void take_look(const Log& log);
  void set_port_up(bool up, const Log& log);
  void follow_mtu(const ibv_port_attr& port, const Log& log);
  void readdress(const ibv_port_attr& port, const std::vector<Gid>& gids, const Log& log);
  Result<std::optional<Gid>> pick_gid(const std::vector<Gid>& gids, bool ethernet) const;
  void set_address(const std::optional<Gid>& gid, const ibv_port_attr& port);
  Result<void> read_port();
  Result<void> try_reliable();
  Result<void> open_control(std::uint32_t qkey);
  void post_control_receive(std::size_t slot) noexcept;

  std::shared_ptr<Context> context_;
  std::uint8_t port_;
  Options options_;
  RailAddress address_;
  std::string pci_folder_;
  std::uint8_t gid_index_ = 0;
  bool grh_ = false;
  bool adaptive_ = false;
  bool repeats_ = false;
  bool soft_ = false;
  Bytes longest_ = 0;
  Bytes piece_ = 0;  // at least, of a longer write
  bool port_up_ = true;
  bool dead_ = false;
  bool broken_ = false;
  bool quiet_ = false;
  std::uint64_t landed_ = 0;
  Instant next_look_{};
  Asked<Look> looking_;
  bool look_ = false;             // an event asks for it
  bool moved_ = false;            // its addresses may be others now
  std::optional<bool> told_up_;   // by the last event of the port
  const char* failed_ = nullptr;  // what the NIC has said to have failed for good
  std::vector<std::uint32_t> failed_qps_;
  std::shared_ptr<ProtectionDomain> domain_;
  std::vector<Shard> shards_;
  struct {
    std::size_t turn = 0;                           // which is polled first
    int refused = std::numeric_limits<int>::max();  // entries: no more is asked for again
  } queues_;
  Buffer control_memory_;
  std::unique_ptr<Registration> control_registration_;
  std::shared_ptr<CompletionQueue> control_queue_;
  std::unique_ptr<QueuePair> control_;
  std::uint32_t control_sent_ = 0;  // datagrams posted and acknowledged: a ring
  std::uint32_t control_done_ = 0;
  int send_error_ = 0;
  std::optional<Error> look_error_;  // of the last look at the port
};

}  // namespace gdrx::verbs
