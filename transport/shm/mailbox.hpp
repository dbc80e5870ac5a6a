// SPDX-License-Identifier: Apache-2.0
// Where a rank is told of what has been written: a ring of immediates for each rank that writes to
// it, and beside each other the newest word of every ring, so that one cache line says that there
// is nothing new. In shared memory: every peer can write all of it, and none is trusted.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gdrx::shm {

inline constexpr std::uint32_t kRing = 256;        // immediates that a peer has not taken yet
inline constexpr std::uint32_t kWordsALine = 8;    // as many ranks need no bell
inline constexpr std::uint32_t kMostRanks = 4096;  // a bell's line has a bit for eight ranks

inline constexpr std::size_t kPage = 4096;
constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + kPage - 1) / kPage * kPage;
}

/// One immediate: its number among those of its pair, the region that was written, and itself.
struct Word {
  std::uint16_t number = 0;
  std::uint16_t region = 0;
  std::uint32_t immediate = 0;
  friend bool operator==(const Word&, const Word&) = default;
};
static_assert(sizeof(Word) == sizeof(std::uint64_t));

/// A view. Offsets follow from the number of ranks alone.
class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(std::span<std::byte> memory, std::uint32_t ranks) noexcept
      : base_(memory.data()), ranks_(ranks) {}
  static std::size_t bytes(std::uint32_t ranks) noexcept {
    return rings_at(ranks) + std::size_t{ranks} * kRing * sizeof(Word);
  }

  bool has_bell() const noexcept { return ranks_ > kWordsALine; }
  std::uint32_t bell_words() const noexcept {
    return (ranks_ + 64 * kWordsALine - 1) / (64 * kWordsALine);
  }

  // The receiver's side.
  /// Bits that were set since: bit g % 64 of word g / 64 says that something is new of the ranks 8
  /// g to 8 g + 7.
  std::uint64_t hear(std::uint32_t word) const noexcept {
    if (bell(word).load(std::memory_order_relaxed) == 0) return 0;
    // acquire: pairs with tell(), so that the newest words are seen
    return bell(word).exchange(0, std::memory_order_acquire);
  }
  Word newest(std::uint32_t source) const noexcept {
    // acquire: pairs with tell(), so that its entries and what was written before are seen
    return std::bit_cast<Word>(newest_of(source).load(std::memory_order_acquire));
  }
  Word entry(std::uint32_t source, std::uint16_t number) const noexcept {
    return std::bit_cast<Word>(entry_of(source, number).load(std::memory_order_relaxed));
  }
  void take(std::uint32_t source, std::uint16_t number) const noexcept {
    // release: the entries were read before the sender writes over them
    taken_of(source).store(number, std::memory_order_release);
  }

  // The sender's side.
  std::uint16_t taken(std::uint32_t source) const noexcept {
    // acquire: pairs with take()
    return static_cast<std::uint16_t>(taken_of(source).load(std::memory_order_acquire));
  }
  /// What was stored before is visible to whoever reads the word.
  void tell(std::uint32_t source, Word word) const noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(word);
    entry_of(source, word.number).store(bits, std::memory_order_relaxed);
    // release: publishes the entry, and what was stored before
    newest_of(source).store(bits, std::memory_order_release);
    if (!has_bell()) return;
    const std::uint32_t group = source / kWordsALine;
    // release: pairs with hear(), which sees the word; a bit that is set behind it is heard later
    bell(group / 64).fetch_or(std::uint64_t{1} << group % 64, std::memory_order_release);
  }

 private:
  static constexpr std::size_t kLine = 64;
  std::atomic_ref<std::uint64_t> bell(std::uint32_t word) const noexcept {
    return at<std::uint64_t>(word * sizeof(std::uint64_t));
  }
  // Bell, newest words; a line for each count of what was taken; rings.
  static std::size_t taken_at(std::uint32_t ranks) noexcept {
    return whole_pages(kLine + std::size_t{ranks} * sizeof(Word));
  }
  static std::size_t rings_at(std::uint32_t ranks) noexcept {
    return taken_at(ranks) + whole_pages(std::size_t{ranks} * kLine);
  }
  template <class T>
  std::atomic_ref<T> at(std::size_t offset) const noexcept {
    return std::atomic_ref<T>(*reinterpret_cast<T*>(base_ + offset));
  }
  std::atomic_ref<std::uint64_t> newest_of(std::uint32_t source) const noexcept {
    return at<std::uint64_t>(kLine + std::size_t{source} * sizeof(Word));
  }
  std::atomic_ref<std::uint64_t> entry_of(std::uint32_t source,
                                          std::uint16_t number) const noexcept {
    return at<std::uint64_t>(rings_at(ranks_) +
                             (std::size_t{source} * kRing + number % kRing) * sizeof(Word));
  }
  std::atomic_ref<std::uint32_t> taken_of(std::uint32_t source) const noexcept {
    return at<std::uint32_t>(taken_at(ranks_) + std::size_t{source} * kLine);
  }

  std::byte* base_ = nullptr;
  std::uint32_t ranks_ = 0;
};

}  // namespace gdrx::shm
