// SPDX-License-Identifier: Apache-2.0
// Writes to other hosts as messages over sockets of our own. See docs/concepts/fabrics.md.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gdrx/transport.hpp"
#include "transport/tcp/door.hpp"
#include "transport/tcp/peer.hpp"

namespace gdrx::tcp {

class TcpDevice;

class TcpRegion final : public MemoryRegion {
 public:
  TcpRegion(std::shared_ptr<TcpDevice> device, std::uint32_t id, Pages own)
      : device_(std::move(device)), id_(id), own_(std::move(own)) {}
  ~TcpRegion() override;
  std::span<std::byte> bytes() const noexcept override;
  Blob export_key() const override;

 private:
  std::shared_ptr<TcpDevice> device_;
  std::uint32_t id_;
  Pages own_;
};

class TcpDevice final : public Device,
                        public Door::Host,
                        public std::enable_shared_from_this<TcpDevice> {
 public:
  static Result<std::shared_ptr<TcpDevice>> create(Rank self, const Config& config, const Log& log);
  ~TcpDevice() override;
  TcpDevice(const TcpDevice&) = delete;
  TcpDevice& operator=(const TcpDevice&) = delete;

  Blob address() const override;
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::span<std::byte> memory,
                                                        MemoryKind kind) override;
  Result<std::unique_ptr<MemoryRegion>> allocate_memory(std::size_t bytes) override;
  Result<std::unique_ptr<Endpoint>> connect(Rank peer, std::span<const std::byte> address) override;
  Result<std::size_t> poll(std::span<Completion> completions) override;
  bool busy() const noexcept override { return writes_.taken() > 0 || door_->is_calling(); }
  void isolate_peers() noexcept override { isolating_ = true; }
  void report_to(Hearing& hearing) noexcept override { hearing_ = &hearing; }
  std::string describe() const override;

  // For endpoints and regions.
  Writes& writes() noexcept { return writes_; }
  bool isolating() const noexcept { return isolating_; }
  bool failed() const noexcept { return error_.has_value(); }
  bool plain() const noexcept { return identity_.plain; }
  void send_soon(Peer& peer) noexcept;
  void move();  // everything, once
  /// The endpoint ends: what it has posted is sent, within a limit.
  void finish(Peer& peer) noexcept;
  Ready& ready() noexcept { return ready_; }
  Rank self() const noexcept { return identity_.rank; }
  const Regions& regions() const noexcept { return regions_; }
  void end_region(std::uint32_t id) noexcept;

  // Door::Host.
  Verdict judge(Rank from, const Nonce& tag) override;
  void left(Rank from) noexcept override;
  void joined(Rank rank, Stream stream) override;
  void crossed(Rank rank) override;
  void unreachable(Rank rank, Error error) override;

 private:
  TcpDevice(Rank self, const Log& log) : log_(log) { identity_.rank = self; }
  Result<void> open(const Config& config);
  Result<std::unique_ptr<MemoryRegion>> add_region(std::span<std::byte> memory, Pages own);
  Peer& peer(Rank rank);
  Result<void> check_tag(const Peer& peer) const;
  void call_if_needed(Peer& peer);
  void send();
  void receive();
  void receive_from(Peer& peer);
  void read_on(Peer& peer) noexcept;
  void lose(Peer& peer, Error error);
  void end(Peer& peer, const Error& error);
  void hang_up(Peer& peer) noexcept;
  static void say_goodbye(Peer& peer) noexcept;

  Log log_;
  Identity identity_;
  Regions regions_;
  Writes writes_;
  Ready ready_;
  std::map<Rank, std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> connected_;
  std::vector<Peer*> sending_;
  std::vector<Peer*> unread_;  // their streams hold what the kernel tells nothing of
  Socket epoll_;               // of connected_
  std::unique_ptr<Door> door_;
  Instant next_door_{};
  std::optional<Error> error_;
  Hearing* hearing_ = nullptr;  // or nobody asks
  bool isolating_ = false;
  bool closing_ = false;
};

}  // namespace gdrx::tcp
