// SPDX-License-Identifier: Apache-2.0
// Which memory is registered with a Device, found by address in O(log n).
//
// Safe against memory that is freed and allocated again: nothing is registered behind anybody's
// back. What stands here was put here by its owner (gdrxRegister, gdrxMemAlloc, a communicator's
// own staging and scratch memory), who takes it out before he frees it. So no hook of malloc or
// munmap is needed, and a pointer that is not found is copied, not registered.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "gdrx/result.hpp"
#include "gdrx/transport.hpp"

namespace gdrx {

/// Registered memory. Operations that read it hold it, so that it stays registered until the last
/// of them has ended, whatever its owner does meanwhile.
class Registration {
 public:
  Registration(std::span<std::byte> bytes, std::unique_ptr<MemoryRegion> region)
      : bytes_(bytes), region_(std::move(region)) {}
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  /// Null without a Device: then nothing needs it.
  const MemoryRegion* region() const noexcept { return region_.get(); }

 private:
  friend class RegistrationCache;
  std::span<std::byte> bytes_;
  std::unique_ptr<MemoryRegion> region_;
};
using RegistrationRef = std::shared_ptr<const Registration>;

class RegistrationCache {
 public:
  struct Counters {
    std::uint64_t hits = 0;    // memory looked for and found
    std::uint64_t misses = 0;  // not found: it will be copied
    std::uint64_t shared = 0;  // acquired a second time and more: nothing was registered for it
    std::uint64_t evictions = 0;
    std::uint64_t stale = 0;  // of these: found for addresses that were allocated anew
  };
  /// `device` may be null (shared memory alone).
  explicit RegistrationCache(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  /// Registers memory, or counts one owner more of what covers it already. The memory stays the
  /// caller's, until his release().
  Result<RegistrationRef> acquire(std::span<std::byte> memory, MemoryKind kind);
  /// The same, registered by `make` where it has to be.
  using Maker = std::function<Result<std::unique_ptr<MemoryRegion>>()>;
  Result<RegistrationRef> acquire(std::span<std::byte> memory, const Maker& make);
  /// One owner more of what covers it; null if nothing does.
  RegistrationRef acquire_known(std::span<std::byte> memory) noexcept;
  /// The same for memory that was allocated just now: what is in here for its addresses is of
  /// memory that was freed without a word, and would reach the pages it had. It is taken out.
  Result<RegistrationRef> acquire_new(std::span<std::byte> memory, MemoryKind kind);
  /// One owner less; the last takes it out. False: it is not in here.
  bool release(const Registration* registration) noexcept;
  /// The same for who holds it; what comes back takes long to end. Null: nothing does, or others
  /// hold it still.
  std::unique_ptr<PinnedMemory> release(RegistrationRef registration) noexcept;
  /// Takes it out whoever else owns it: its memory ends. False: it is not in here.
  bool remove(const Registration* registration) noexcept;
  /// What covers all of `memory`, or null. O(log n), allocates nothing.
  RegistrationRef find(std::span<const std::byte> memory) noexcept;

  /// How many release() of it are still to come.
  std::uint64_t owners(const Registration* registration) const noexcept;
  const Counters& counters() const noexcept { return counters_; }
  std::size_t size() const noexcept { return entries_.size(); }
  /// Of all that is registered; what is so twice counts twice.
  std::uint64_t bytes() const noexcept;

 private:
  struct Entry {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    std::uint64_t owners = 1;
    std::shared_ptr<Registration> registration;
    std::size_t widest = 0;  // of the entries up to this one, which ends last
  };
  const Entry* covering(std::span<const std::byte> memory) const noexcept;
  std::vector<Entry>::iterator place_of(const Registration* registration) noexcept;
  void erase(std::vector<Entry>::iterator entry) noexcept;
  void index_from(std::size_t first) noexcept;

  std::shared_ptr<Device> device_;
  std::vector<Entry> entries_;  // ascending by begin; they may overlap
  Counters counters_;
};

}  // namespace gdrx
