// SPDX-License-Identifier: Apache-2.0
#include "transport/memory/registration_cache.hpp"

#include <algorithm>

namespace gdrx {
namespace {

std::uintptr_t begin_of(std::span<const std::byte> memory) {
  return reinterpret_cast<std::uintptr_t>(memory.data());
}

}  // namespace

// Of all entries that begin at or before the memory, the one that ends last covers it if any does.
const RegistrationCache::Entry* RegistrationCache::covering(
    std::span<const std::byte> memory) const noexcept {
  const std::uintptr_t begin = begin_of(memory);
  const auto after =
      std::upper_bound(entries_.begin(), entries_.end(), begin,
                       [](std::uintptr_t at, const Entry& entry) { return at < entry.begin; });
  if (after == entries_.begin()) return nullptr;
  const Entry& widest = entries_[(after - 1)->widest];
  return begin + memory.size() <= widest.end ? &widest : nullptr;
}

void RegistrationCache::index_from(std::size_t first) noexcept {
  for (std::size_t i = first; i < entries_.size(); ++i) {
    const bool farther = i == 0 || entries_[i].end > entries_[entries_[i - 1].widest].end;
    entries_[i].widest = farther ? i : entries_[i - 1].widest;
  }
}

Result<RegistrationRef> RegistrationCache::acquire(std::span<std::byte> memory, MemoryKind kind) {
  return acquire(memory, [&]() -> Result<std::unique_ptr<MemoryRegion>> {
    if (!device_) return nullptr;
    return device_->register_memory(memory, kind);
  });
}

Result<RegistrationRef> RegistrationCache::acquire(std::span<std::byte> memory, const Maker& make) {
  if (memory.empty()) return fail(Errc::invalid_argument, "memory of no bytes is not registered");
  if (RegistrationRef known = acquire_known(memory)) return known;
  std::unique_ptr<MemoryRegion> region = GDRX_TRY(make());
  Entry entry;
  entry.begin = begin_of(memory);
  entry.end = entry.begin + memory.size();
  entry.registration = std::make_shared<Registration>(memory, std::move(region));
  const auto at = std::upper_bound(
      entries_.begin(), entries_.end(), entry.begin,
      [](std::uintptr_t begin, const Entry& other) { return begin < other.begin; });
  const auto index = static_cast<std::size_t>(at - entries_.begin());
  RegistrationRef made = entry.registration;
  entries_.insert(at, std::move(entry));
  index_from(index);
  return made;
}

RegistrationRef RegistrationCache::acquire_known(std::span<std::byte> memory) noexcept {
  const Entry* known = memory.empty() ? nullptr : covering(memory);
  if (known == nullptr) return nullptr;
  ++counters_.shared;
  Entry& entry = entries_[static_cast<std::size_t>(known - entries_.data())];
  ++entry.owners;
  return entry.registration;
}

Result<RegistrationRef> RegistrationCache::acquire_new(std::span<std::byte> memory,
                                                       MemoryKind kind) {
  const std::uintptr_t begin = begin_of(memory);
  const std::size_t gone = std::erase_if(entries_, [&](const Entry& entry) {
    return entry.begin < begin + memory.size() && begin < entry.end;
  });
  counters_.stale += gone;
  counters_.evictions += gone;
  if (gone > 0) index_from(0);
  return acquire(memory, kind);
}

std::vector<RegistrationCache::Entry>::iterator RegistrationCache::place_of(
    const Registration* registration) noexcept {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.registration.get() == registration; });
}

std::uint64_t RegistrationCache::owners(const Registration* registration) const noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.registration.get() == registration;
  });
  return found == entries_.end() ? 0 : found->owners;
}

void RegistrationCache::erase(std::vector<Entry>::iterator entry) noexcept {
  ++counters_.evictions;
  const auto index = static_cast<std::size_t>(entry - entries_.begin());
  entries_.erase(entry);
  index_from(index);
}

bool RegistrationCache::release(const Registration* registration) noexcept {
  const auto found = place_of(registration);
  if (found == entries_.end()) return false;
  if (--found->owners == 0) erase(found);
  return true;
}

std::unique_ptr<PinnedMemory> RegistrationCache::release(RegistrationRef registration) noexcept {
  const auto found = place_of(registration.get());
  if (found == entries_.end() || --found->owners > 0) return nullptr;
  const std::shared_ptr<Registration> last = found->registration;
  registration.reset();
  erase(found);
  if (!device_ || last.use_count() > 1) return nullptr;
  return device_->disown(std::move(last->region_));
}

bool RegistrationCache::remove(const Registration* registration) noexcept {
  const auto found = place_of(registration);
  if (found == entries_.end()) return false;
  erase(found);
  return true;
}

RegistrationRef RegistrationCache::find(std::span<const std::byte> memory) noexcept {
  const Entry* found = memory.empty() ? nullptr : covering(memory);
  ++(found != nullptr ? counters_.hits : counters_.misses);
  return found != nullptr ? found->registration : nullptr;
}

std::uint64_t RegistrationCache::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const Entry& entry : entries_) sum += entry.end - entry.begin;
  return sum;
}

}  // namespace gdrx
