// SPDX-License-Identifier: Apache-2.0
// Whose a place of the page is, one connection's after another's, while another process copies it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace gdrx::stats {

enum class Way : std::uint32_t { none = 0, send = 1, receive = 2 };

/// A sequence lock. One thread at a time begins a connection, and one ends it.
class Place {
 public:
  Way way() const noexcept {
    return static_cast<Way>(word_.load(std::memory_order_relaxed) & kWay);
  }
  /// Nobody's, and what the last one counted was before.
  bool is_free() const noexcept {
    // acquire: pairs with the release in end()
    return (word_.load(std::memory_order_acquire) & kWay) == 0;
  }
  /// Of a free place. What it says of the next connection is written between the two.
  void begin() noexcept {
    // release fence: who sees what is written below sees that the place was free
    std::atomic_thread_fence(std::memory_order_release);
  }
  void began(Way way) noexcept {
    const std::uint32_t next = (word_.load(std::memory_order_relaxed) & ~kWay) + kWay + 1;
    word_.store(next + static_cast<std::uint32_t>(way), std::memory_order_release);  // all is there
  }
  void end() noexcept {
    const std::uint32_t word = word_.load(std::memory_order_relaxed);
    // release: its counts are written before the next connection's
    word_.store(word & ~kWay, std::memory_order_release);
  }
  friend bool operator==(const Place& a, const Place& b) noexcept {
    return a.word_.load(std::memory_order_relaxed) == b.word_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kWay = 3;  // the other bits say which of the place's connections
  std::atomic<std::uint32_t> word_{0};
};

/// A short text, cut if it has to be.
class Label {
 public:
  static constexpr std::size_t kBytes = 48;
  void put(std::string_view text) noexcept {
    std::array<char, kBytes> bytes{};
    std::memcpy(bytes.data(), text.data(), text.size() < kBytes ? text.size() : kBytes - 1);
    for (std::size_t i = 0; i < words_.size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
      words_[i].store(word, std::memory_order_relaxed);
    }
  }
  std::array<char, kBytes> get() const noexcept {
    std::array<char, kBytes> bytes;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t word = words_[i].load(std::memory_order_relaxed);
      std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
    }
    return bytes;
  }

 private:
  std::array<std::atomic<std::uint64_t>, kBytes / sizeof(std::uint64_t)> words_{};
};

/// Copies `connection` of a page by `read`, which may take its words in any order: thrice, as what
/// is the same connection's at first and at last is its own in between. What is not becomes free.
template <class Page, class Read>
bool read_steadily(Page& page, Page& before, Page& after, const Read& read) {
  if (!read(before)) return false;
  // acquire fence: no word is older than the connection that was seen
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!read(page)) return false;
  // acquire fence: of a newer connection than that, the newer state is seen
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!read(after)) return false;
  for (std::size_t i = 0; i < page.connection.size(); ++i) {
    const Place& place = before.connection[i].place;
    if (place == page.connection[i].place && place == after.connection[i].place) continue;
    page.connection[i].place.end();
  }
  return true;
}

}  // namespace gdrx::stats
