// SPDX-License-Identifier: Apache-2.0
#include "collectives/trace/event_ring.hpp"

#include <bit>

namespace gdrx::trace {
namespace {

std::uint64_t pointer_of(std::string_view text) {
  return std::bit_cast<std::uint64_t>(text.data());
}

std::string_view text_of(std::uint64_t pointer, std::uint64_t length) {
  return {std::bit_cast<const char*>(pointer), length & 0xff};
}

}  // namespace

std::array<std::uint64_t, Ring::kWords> Ring::pack(const Event& event) noexcept {
  const auto kind = static_cast<std::uint64_t>(event.kind);
  const auto row = static_cast<std::uint64_t>(event.row);
  return {static_cast<std::uint64_t>(event.begin.time_since_epoch().count()),
          static_cast<std::uint64_t>(event.length.count()),
          pointer_of(event.name),
          pointer_of(event.algorithm),
          (event.name.size() & 0xff) | (event.algorithm.size() & 0xff) << 8 | kind << 16 |
              row << 24 | std::uint64_t{event.communicator} << 32,
          static_cast<std::uint32_t>(event.peer) | std::uint64_t{event.index} << 32,
          event.bytes};
}

Event Ring::unpack(const std::array<std::uint64_t, kWords>& words) noexcept {
  Event event;
  event.begin = Instant(Duration(static_cast<std::int64_t>(words[kBegin])));
  event.length = Duration(static_cast<std::int64_t>(words[kLength]));
  event.name = text_of(words[2], words[4]);
  event.algorithm = text_of(words[3], words[4] >> 8);
  event.kind = static_cast<Kind>(words[4] >> 16 & 0xff);
  event.row = static_cast<Row>(words[4] >> 24 & 0xff);
  event.communicator = static_cast<std::uint16_t>(words[4] >> 32);
  event.peer = static_cast<std::int32_t>(words[5]);
  event.index = static_cast<std::uint32_t>(words[5] >> 32);
  event.bytes = words[6];
  return event;
}

std::uint64_t Ring::add(const Event& event) noexcept {
  // relaxed: the number is all that is taken
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[number % slots_.size()];
  const auto words = pack(event);
  // A writer that was lapped may still be in the slot, or a later one have been here: then this
  // event is left out, and the reader counts it among the dropped.
  std::uint64_t before = slot.version.load(std::memory_order_relaxed);
  const bool taken = before % 2 == 1 || before > 2 * number;
  // acquire: the words of this event stay behind those of the one before
  if (taken || !slot.version.compare_exchange_strong(
                   before, 2 * number + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
    return number;
  }
  std::atomic_thread_fence(std::memory_order_release);  // the odd version before any word
  for (std::size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_relaxed);
  slot.version.store(2 * number + 2, std::memory_order_release);  // publishes the words
  return number;
}

void Ring::end(std::uint64_t number, Duration length) noexcept {
  Slot& slot = slots_[number % slots_.size()];
  // A slot that is overwritten just now gets a length that is not its own: one wrong bar in a
  // picture that has dropped events anyhow.
  if (slot.version.load(std::memory_order_relaxed) != 2 * number + 2) return;
  slot.words[kLength].store(static_cast<std::uint64_t>(length.count()), std::memory_order_relaxed);
}

void Ring::set(std::uint64_t number, Instant begin, Duration length) noexcept {
  Slot& slot = slots_[number % slots_.size()];
  if (slot.version.load(std::memory_order_relaxed) != 2 * number + 2) return;  // as in end()
  slot.words[kBegin].store(static_cast<std::uint64_t>(begin.time_since_epoch().count()),
                           std::memory_order_relaxed);
  // release: who sees the length sees the beginning, too
  slot.words[kLength].store(static_cast<std::uint64_t>(length.count()), std::memory_order_release);
}

Ring::Reading Ring::read() const {
  Reading reading;
  const std::uint64_t end = next_.load(std::memory_order_relaxed);
  const std::uint64_t begin = end > slots_.size() ? end - slots_.size() : 0;
  reading.dropped = begin;
  for (std::uint64_t number = begin; number < end; ++number) {
    const Slot& slot = slots_[number % slots_.size()];
    std::array<std::uint64_t, kWords> words{};
    // acquire: pairs with the last store of add(), so that the words are no older than the version
    const std::uint64_t before = slot.version.load(std::memory_order_acquire);
    // acquire: pairs with set(), so that its beginning is read behind its length
    words[kLength] = slot.words[kLength].load(std::memory_order_acquire);
    for (std::size_t i = 0; i < kWords; ++i) {
      if (i != kLength) words[i] = slot.words[i].load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);  // the words before the second look
    const std::uint64_t after = slot.version.load(std::memory_order_relaxed);
    if (before != 2 * number + 2 || after != before) {
      ++reading.dropped;
    } else {
      reading.events.push_back(unpack(words));
    }
  }
  return reading;
}

}  // namespace gdrx::trace
