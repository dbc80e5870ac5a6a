// SPDX-License-Identifier: Apache-2.0
// The memory that peers may write, by numbers that only those who were given a key can name.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gdrx/transport.hpp"
#include "transport/tcp/wire.hpp"

namespace gdrx::tcp {

class Regions {
 public:
  /// Errc::system if there is no randomness.
  Result<std::uint32_t> add(std::span<std::byte> bytes);
  void remove(std::uint32_t id) noexcept;
  std::span<std::byte> bytes(std::uint32_t id) const noexcept { return all_[id].bytes; }
  RegionKey key(std::uint32_t id) const noexcept;
  /// Null: it has ended, or never was, or the key is another one's.
  const std::span<std::byte>* find(std::uint32_t id, std::uint64_t nonce) const noexcept {
    if (id >= all_.size() || !all_[id].live || all_[id].nonce != nonce) return nullptr;
    return &all_[id].bytes;
  }

 private:
  struct Entry {
    std::span<std::byte> bytes;
    std::uint64_t nonce = 0;
    bool live = false;
  };
  std::vector<Entry> all_;
  std::vector<std::uint32_t> free_;
};

/// Zero pages, committed where they are touched.
class Pages {
 public:
  static Result<Pages> map(std::size_t bytes);
  Pages() = default;
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace gdrx::tcp
