// SPDX-License-Identifier: Apache-2.0
// What sender and receiver have in common, and the table by which a request or an immediate finds
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gdrx/result.hpp"
#include "gdrx/transport.hpp"
#include "plugin/core/greeting.hpp"
#include "plugin/core/lane.hpp"
#include "plugin/core/request.hpp"
#include "plugin/stats/writer.hpp"
#include "transport/bootstrap/socket.hpp"

namespace gdrx::net {

/// What test() answers.
struct Answer {
  Progress progress = Progress::pending;
  int count = 0;               // sizes that follow
  const int* sizes = nullptr;  // valid until the lane's turn ends
};

/// Used under its lane's turn only, but for index() and lane().
class Comm {
 public:
  virtual ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  std::uint16_t index() const noexcept { return index_; }
  Lane& lane() const noexcept { return *lane_; }
  const std::shared_ptr<Lane>& shared_lane() const noexcept { return lane_; }

  /// A chunk has come. From the lane's poll.
  virtual void on_immediate() = 0;
  /// A write of ours is done. From the lane's poll.
  virtual void on_written(std::uint32_t slot) = 0;
  /// Drives the request. After `done` it is dead. Errors stay.
  virtual Result<Answer> test(RequestId id) = 0;

  /// The side channel, kept open: its end tells that the peer is gone.
  void keep(Greeting channel) { channel_.emplace(std::move(channel)); }
  const std::string& peer_name() const noexcept { return peer_name_; }
  bool has_open() const noexcept { return counters_ != nullptr && open_ > 0; }
  /// Makes GPU memory known to the other side; its number there, 0 where that is not needed.
  virtual Result<std::uint32_t> hand_over(std::span<std::byte>) { return 0U; }
  /// The same for a region that the fabric writes into.
  virtual Result<std::uint32_t> hand_over(const MemoryRegion&) { return 0U; }
  /// What the oldest open request waits for, for a person; empty if none is open.
  virtual std::string state() const = 0;

 protected:
  explicit Comm(std::shared_ptr<Lane> lane) : lane_(std::move(lane)) {}
  /// Errc::unsupported when there are too many communicators in the process.
  Result<void> enter();
  /// The endpoint's error or what was wrong before, else done. Cheap.
  Result<void> healthy() const;
  Error& break_with(Error error);
  /// What came over the side channel. Errc::peer_lost at its end.
  Result<void> read_channel();
  virtual Result<void> on_frame(const Frame&) {
    return fail(Errc::protocol, peer_name_ + " says what is not of the protocol");
  }
  /// False if it cannot be sent at once.
  bool tell(std::span<const std::byte> payload) noexcept;
  /// For a request that does not move: now and then, not on every call, notices that the peer has
  /// closed, and reports a stall.
  Result<void> look_at_peer();
  void moved() noexcept {
    idle_ = 0;
    still_since_ = {};
  }
  /// Once the peer is known.
  void count_as(stats::Way way);
  void begun(Instant* at) noexcept;
  void ended(Instant at, Bytes bytes, bool small) noexcept;

  Endpoint* endpoint_ = nullptr;  // the lane's
  std::string peer_name_;
  stats::Connection* counters_ = nullptr;

 private:
  std::shared_ptr<Lane> lane_;
  std::uint16_t index_ = 0;  // 0: not in the table
  std::optional<Error> error_;
  std::optional<Greeting> channel_;
  std::uint32_t idle_ = 0;
  std::optional<Instant> gone_since_;
  std::uint32_t open_ = 0;
  std::optional<Instant> still_since_;
  Instant next_report_{};
};

/// Null if there is none of that number. The caller then takes its lane's turn; who closes a
/// communicator while another thread uses it breaks NCCL's rules.
Comm* find_comm(std::uint16_t index) noexcept;
/// Only if it is that lane's, under that lane's turn.
Comm* find_comm_of(const Lane& lane, std::uint16_t index) noexcept;

}  // namespace gdrx::net
