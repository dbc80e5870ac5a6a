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
#include "plugin/core/device_context.hpp"
#include "plugin/core/greeting.hpp"
#include "plugin/core/request.hpp"
#include "plugin/stats/writer.hpp"
#include "transport/bootstrap/socket.hpp"

namespace gdrx::net {

struct Memory;

/// What test() answers.
struct Answer {
  Progress progress = Progress::pending;
  int count = 0;               // sizes that follow
  const int* sizes = nullptr;  // valid until the device context's lock ends
};

/// Used under its device context's lock only, but for index() and device_context().
class Comm {
 public:
  virtual ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  std::uint16_t index() const noexcept { return index_; }
  DeviceContext& device_context() const noexcept { return *device_context_; }
  const std::shared_ptr<DeviceContext>& shared_device_context() const noexcept {
    return device_context_;
  }

  /// No other peer of the device context may complete what is owed by this connection's.
  bool is_from(Rank peer) const noexcept { return endpoint_ != nullptr && peer == peer_; }
  /// What it stands for has come: of index() a chunk. From the device context's poll.
  virtual void on_immediate(std::uint16_t index) = 0;
  /// A write of ours is done. From the device context's poll.
  virtual void on_written(std::uint32_t slot) = 0;
  /// Drives the request. After `done` it is dead. Errors stay.
  virtual Result<Answer> test(RequestId id) = 0;

  /// The side channel, kept open: its end tells that the peer is gone.
  void keep(Greeting channel) { channel_.emplace(std::move(channel)); }
  const std::string& peer_name() const noexcept { return peer_name_; }
  bool has_open() const noexcept { return counters_ != nullptr && open_ > 0; }
  /// Makes GPU memory known to the other side; its number there, 0 where that is not needed.
  virtual Result<std::uint32_t> hand_over(std::span<std::byte>) { return 0U; }
  /// The same for a region that the fabric writes into, until take_back(); counted.
  virtual std::uint32_t hand_over(const MemoryRegion&) { return 0; }
  virtual void take_back(const MemoryRegion&) {}
  /// That memory is deregistered, and may be freed next, with requests of its open, too: nothing
  /// reads or writes it any more.
  virtual void let_go(const Memory&) noexcept {}
  /// One line of everything, where a communicator is aborted or has failed.
  void dump() const;
  /// What the oldest open request waits for, for a person; empty if none is open.
  virtual std::string state() const = 0;

 protected:
  explicit Comm(std::shared_ptr<DeviceContext> device_context)
      : device_context_(std::move(device_context)) {}
  void reached_over(Endpoint& endpoint) noexcept {
    endpoint_ = &endpoint;
    peer_ = endpoint.peer();
  }
  /// Errc::unsupported when there are too many communicators in the process.
  Result<void> enter();
  /// One more number under which immediates come here.
  Result<std::uint16_t> enter_again();
  /// The endpoint's error or what was wrong before, else done. Cheap.
  Result<void> healthy() const;
  Error& break_with(Error error);
  /// What came over the side channel. Errc::peer_lost at its end.
  Result<void> read_channel();
  virtual Result<void> on_frame(const Frame&) {
    return fail(Errc::protocol, peer_name_ + " says what is not of the protocol");
  }
  /// Over the side channel, in order; what cannot be sent at once goes when tests find time.
  void tell(std::span<const std::byte> payload);
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

  Endpoint* endpoint_ = nullptr;  // the device context's
  std::string peer_name_;
  stats::Connection* counters_ = nullptr;

 private:
  std::shared_ptr<DeviceContext> device_context_;
  Rank peer_{};
  std::uint16_t index_ = 0;  // 0: not in the table
  std::uint16_t second_index_ = 0;
  std::optional<Error> error_;
  std::optional<Greeting> channel_;
  std::uint32_t idle_ = 0;
  std::optional<Instant> gone_since_;
  std::uint32_t open_ = 0;
  std::optional<Instant> still_since_;
  Instant next_report_{};
};

/// Null if there is none of that number. The caller then takes its device context's lock; who
/// closes a communicator while another thread uses it breaks NCCL's rules.
Comm* find_comm(std::uint16_t index) noexcept;
/// Only if it is that device context's, under that device context's lock.
Comm* find_comm_of(const DeviceContext& device_context, std::uint16_t index) noexcept;

}  // namespace gdrx::net
