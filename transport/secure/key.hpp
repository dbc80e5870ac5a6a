// SPDX-License-Identifier: Apache-2.0
// Keys: 32 bytes that are wiped when they go, and how one is made from another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx {

/// Overwrites memory in a way that the compiler keeps.
void wipe(std::span<std::byte> bytes) noexcept;

class Key {
 public:
  static constexpr std::size_t kBytes = 32;
  Key() = default;  // zeros
  explicit Key(std::span<const std::byte, kBytes> bytes) noexcept;
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;
  ~Key() { wipe(bytes_); }
  /// From the kernel.
  static Result<Key> random();

  std::span<const std::byte, kBytes> bytes() const noexcept { return bytes_; }
  /// Takes as long wherever they differ.
  friend bool operator==(const Key& a, const Key& b) noexcept;

 private:
  std::array<std::byte, kBytes> bytes_{};
};

/// What a derived key is for, beside its label: numbers and texts, in order. No two lists of
/// different parts have the same bytes. A short one needs no memory.
class KeyContext {
 public:
  template <class T>
  requires(std::is_integral_v<T>) KeyContext& add(T number) {
    return append(sizeof number, std::as_bytes(std::span(&number, 1)));
  }
  KeyContext& add(std::span<const std::byte> bytes) { return append(bytes.size(), bytes); }
  KeyContext& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  std::span<const std::byte> bytes() const noexcept {
    return many_.empty() ? std::span(few_).first(size_) : std::span(many_);
  }
  /// Nor does one of at most so many parts, which have so many bytes together.
  void reserve(std::size_t parts, std::size_t bytes) {
    many_.reserve(parts * sizeof(std::uint64_t) + bytes);
  }
  void clear() noexcept {
    many_.clear();
    size_ = 0;
  }

 private:
  KeyContext& append(std::uint64_t length, std::span<const std::byte> bytes);
  void append(std::span<const std::byte> bytes);
  std::array<std::byte, 1280> few_;
  std::size_t size_ = 0;         // of them
  std::vector<std::byte> many_;  // in place of them
};

/// HKDF (RFC 5869) with SHA-256. Keys of different labels or contexts say nothing of each other,
/// nor of `from`.
Result<Key> derive(std::span<const std::byte> from, std::string_view label,
                   const KeyContext& context = {});
inline Result<Key> derive(const Key& from, std::string_view label, const KeyContext& context = {}) {
  return derive(from.bytes(), label, context);
}

/// HKDF-Expand-Label (RFC 8446, 7.1) without a context: fills `out`, 255 bytes at most.
Result<void> expand_label(const Key& secret, std::string_view label, std::span<std::byte> out);

/// scrypt (RFC 7914) with 16 MiB, some 40 ms: for secrets that people choose.
Result<Key> stretch(std::span<const std::byte> secret, std::string_view label);

}  // namespace gdrx
