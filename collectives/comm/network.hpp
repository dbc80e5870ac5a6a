// SPDX-License-Identifier: Apache-2.0
// A communicator's side of its fabric: the device, what it is registered with and the connections.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/comm/failure.hpp"
#include "collectives/comm/hello.hpp"
#include "collectives/comm/memory_held.hpp"
#include "collectives/comm/staging_pool.hpp"
#include "collectives/exec/send_ring.hpp"
#include "gdrx/transport.hpp"
#include "transport/fabric/hearing.hpp"
#include "transport/memory/pages.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

/// Used by the thread that drives the communicator, but for hears() and pinned().
class Network final : public exec::Links {
 public:
  /// `failure`: of the communicator, which makes no connection after it. Outlives this object.
  explicit Network(const Failure& failure) : failure_(failure) {}

  // As the communicator is made.
  void describe_self(Rank self, const exec::RingShape& shape) {
    self_ = self;
    shape_ = shape;
  }
  void use(std::shared_ptr<Fabric> fabric) { fabric_ = std::move(fabric); }
  Result<void> open(std::shared_ptr<Device> device);
  void open_registrations() {
    registrations_.emplace(device_);
    pinned_.emplace(*registrations_);
  }
  /// What every rank has said of itself, by rank.
  std::vector<Hello>& peers() noexcept { return peers_; }

  // Null where there is none, as the next.
  const std::shared_ptr<Fabric>& fabric() const noexcept { return fabric_; }
  Device* device() const noexcept { return device_.get(); }
  bool has_receive_ring() const noexcept { return receive_ring_ != nullptr; }
  std::uint64_t receive_ring_bytes() const noexcept {
    return receive_ring_ ? receive_ring_->shape().bytes() : 0;
  }
  const std::vector<Hello>& peers() const noexcept { return peers_; }
  bool has_registrations() const noexcept { return registrations_.has_value(); }
  RegistrationCache& registrations() noexcept { return *registrations_; }
  const RegistrationCache& registrations() const noexcept { return *registrations_; }
  std::size_t scratch_bytes() const noexcept { return scratch_.pages.bytes().size(); }

  StagingPool& pinned() noexcept { return *pinned_; }
  const StagingPool& pinned() const noexcept { return *pinned_; }

  /// Registered pages, zero at first, until free().
  Result<std::byte*> allocate(std::size_t bytes);
  bool has_allocated(const std::byte* memory) const { return allocations_.contains(memory); }
  void free(const std::byte* memory);
  std::uint64_t allocated_bytes() const noexcept;

  /// What the device has completed since. There is a device.
  Result<std::span<const Completion>> poll();
  /// Whether the peer was heard since the last time. Any thread.
  bool hears(Rank peer) noexcept { return hearing_ && hearing_->take(peer); }
  /// Ends the connections: first the writes, then the regions that they read.
  void close() noexcept { send_rings_.clear(); }

  // exec::Links
  Result<exec::SendRing*> to(Rank peer) override;
  const exec::RingShape& shape() const noexcept override { return shape_; }
  exec::ReceiveRing& receive_ring() noexcept override { return *receive_ring_; }
  Rank self() const noexcept override { return self_; }
  RegistrationRef registered(std::span<const std::byte> memory) noexcept override {
    return registrations_->find(memory);
  }
  Result<Scratch> scratch(std::size_t bytes) override;

 private:
  const Failure& failure_;
  Rank self_{};
  exec::RingShape shape_;
  std::vector<Hello> peers_;
  std::shared_ptr<Fabric> fabric_;
  std::optional<Hearing> hearing_;  // with device_, which tells it
  std::shared_ptr<Device> device_;
  std::optional<RegistrationCache> registrations_;
  Allocation scratch_;
  std::unique_ptr<exec::ReceiveRing> receive_ring_;
  std::vector<std::unique_ptr<exec::SendRing>> send_rings_;  // made when they are first needed
  std::vector<Completion> completions_;
  std::optional<StagingPool> pinned_;  // with registrations_
  std::map<const std::byte*, Allocation> allocations_;
};

}  // namespace gdrx
