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
#include "plugin/core/lane.hpp"
#include "plugin/core/request.hpp"
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
  void keep(Socket channel) { channel_ = std::move(channel); }
  const std::string& peer_name() const noexcept { return peer_name_; }

 protected:
  explicit Comm(std::shared_ptr<Lane> lane) : lane_(std::move(lane)) {}
  /// Errc::unsupported when there are too many communicators in the process.
  Result<void> enter();
  /// The endpoint's error or what was wrong before, else done. Cheap.
  Result<void> healthy() const;
  Error& break_with(Error error);
  /// For a request that does not move: notices, now and then, that the peer has closed. Not on
  /// every call.
  Result<void> look_at_peer();

  Endpoint* endpoint_ = nullptr;  // the lane's
  std::string peer_name_;

 private:
  std::shared_ptr<Lane> lane_;
  std::uint16_t index_ = 0;  // 0: not in the table
  std::optional<Error> error_;
  Socket channel_;
  std::uint32_t idle_ = 0;
  std::optional<Instant> gone_since_;

 public:
  void moved() noexcept { idle_ = 0; }
};

/// Null if there is none of that number. The caller then takes its lane's turn; who closes a
/// communicator while another thread uses it breaks NCCL's rules.
Comm* find_comm(std::uint16_t index) noexcept;
/// Only if it is that lane's, under that lane's turn.
Comm* find_comm_of(const Lane& lane, std::uint16_t index) noexcept;

}  // namespace gdrx::net
