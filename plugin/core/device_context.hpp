// SPDX-License-Identifier: Apache-2.0
// A transport device and what is connected over it, used by one NCCL communicator: each has a
// progress thread of its own, and device contexts spare them each other's locks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "gdrx/config.hpp"
#include "gdrx/transport.hpp"
#include "plugin/core/copy_threads.hpp"
#include "plugin/core/devices.hpp"
#include "plugin/core/fair_lock.hpp"
#include "plugin/core/loop.hpp"
#include "plugin/core/wire.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx::net {

/// Fills `bytes` from the kernel's generator.
Result<void> random_bytes(std::span<std::byte> bytes);
template <class T>
Result<T> random_value() {
  T value{};
  GDRX_TRY(random_bytes(std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

class DeviceContext {
 public:
  static Result<std::shared_ptr<DeviceContext>> open(const std::string& fabric, const NetDevice& on,
                                                     const Config& config, const Log& log);

  /// Taken around everything below.
  FairLock& lock() noexcept { return lock_; }
  Device& device() noexcept { return *device_; }
  const DeviceContextId& id() const noexcept { return id_; }
  const Log& log() const noexcept { return log_; }
  const Config& config() const noexcept { return config_; }
  const std::string& fabric() const noexcept { return fabric_; }
  const std::string& device_name() const noexcept { return device_name_; }
  /// Null: the calling thread is to copy by itself.
  CopyThreads* copy_threads() const noexcept { return copy_threads_.get(); }
  int pointers() const noexcept { return pointers_; }  // of NCCL's kinds, which it may register

  /// A region's key for a peer, which may be this device context itself.
  Blob export_key(const MemoryRegion& region);
  void forget(const MemoryRegion& region) noexcept { loop_.forget(region); }

  /// How many peers are to be received from at once, as NCCL says; negative: it does not.
  void expect_peers(std::int32_t peers) noexcept { peers_hint_.store(peers); }
  std::int32_t expected_peers() const noexcept { return peers_hint_.load(); }

  /// What is registered over and over, NCCL's or a user's, is registered once: reg_is_global.
  RegistrationCache& memory() noexcept { return *memory_; }
  /// Brings what has happened to the device and the registrations into the process's counters. Not
  /// on the way of messages.
  void account() noexcept;
  /// One owner less of what memory() gave. What comes back is to be ended without the lock.
  std::unique_ptr<PinnedMemory> release(RegistrationRef registration) noexcept;

  /// The transport knows peers by ranks of 31 random bits: whether that device context's is
  /// another's here, so that it is not to be reached under it.
  bool knows_another(const DeviceContextId& peer) const noexcept;
  /// The one endpoint to that device context, connected on first use, open as long as this device
  /// context.
  Result<Endpoint*> endpoint_to(const DeviceContextId& peer, std::span<const std::byte> address);
  /// Drives the device once and tells communicators what has come.
  Result<void> poll();
  /// For a call that has found nothing to do: over a NIC in software it sleeps as long as nothing
  /// has moved in this process, at most GDRX_NET_NAP, unless its thread has just slept. Whether it
  /// has slept.
  bool nap() const noexcept;
  /// A request has begun or a completion has come: nobody sleeps for a while.
  void stir() const noexcept;
  /// Polls until `writes` of a closing communicator are done; bounded.
  template <class Done>
  void drain(const Done& done) noexcept;

 private:
  DeviceContext(Config config, Log log) : config_(std::move(config)), log_(std::move(log)) {}

  FairLock lock_;
  Config config_;
  Log log_;
  std::string fabric_;
  std::string device_name_;
  int pointers_ = nccl::kPtrHost;
  Duration longest_nap_{};  // none: it never sleeps
  std::atomic<std::int32_t> peers_hint_{nccl::kUndefined};
  DeviceContextId id_;
  std::shared_ptr<Device> device_;
  std::optional<RegistrationCache> memory_;
  std::shared_ptr<CopyThreads> copy_threads_;
  DeviceEvents accounted_;
  Loop loop_;
  std::map<std::uint64_t, std::unique_ptr<Endpoint>> peers_;  // by nonce; before device_ goes
};

template <class Done>
void DeviceContext::drain(const Done& done) noexcept {
  constexpr std::chrono::milliseconds kLimit{20};
  const Deadline deadline = Deadline::after(steady_clock(), kLimit);
  while (!done() && !deadline.passed(steady_clock().now())) {
    if (!poll()) return;
  }
}

/// The slot of a write that is of no request.
inline constexpr std::uint32_t kNoSlot = 0xffffffff;

/// A write's cookie: whose it is.
constexpr std::uint64_t cookie_of(std::uint16_t comm, std::uint32_t slot) noexcept {
  return std::uint64_t{comm} << 32 | slot;
}

}  // namespace gdrx::net
