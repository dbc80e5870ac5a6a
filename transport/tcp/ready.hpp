// SPDX-License-Identifier: Apache-2.0
// What poll() is to hand out, and the writes under way: both of fixed size.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "gdrx/transport.hpp"
#include "transport/tcp/wire.hpp"

namespace gdrx::tcp {

inline constexpr std::size_t kWrites = 1024;  // under way on a device

/// Completions, first in, first out. A device receives no more while it is half full, so that all
/// writes under way find room.
class Ready {
 public:
  bool has_room() const noexcept { return size() < kSize - kWrites - kMostInStage; }
  std::size_t size() const noexcept { return last_ - first_; }
  void push(const Completion& completion) noexcept { ring_[last_++ % kSize] = completion; }
  std::size_t take(std::span<Completion> to) noexcept {
    const std::size_t count = std::min(to.size(), size());
    for (std::size_t i = 0; i < count; ++i) to[i] = ring_[first_++ % kSize];
    return count;
  }

 private:
  static constexpr std::size_t kSize = 4 * kWrites;
  static constexpr std::size_t kMostInStage = 512;  // messages that one receive() may end
  std::vector<Completion> ring_ = std::vector<Completion>(kSize);
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

/// A write under way: its head and header as they are sent, and where the payload lies.
struct Write {
  Write* next = nullptr;
  std::uint64_t end = 0;  // of its bytes, in the connection's
  std::uint64_t cookie = 0;
  std::span<const std::byte> payload;
  std::size_t front_length = 0;
  std::array<std::byte, sizeof(MessageHead) + kMaxWriteHeader> front;

  std::size_t size() const noexcept { return front_length + payload.size(); }
  void set_front(const MessageHead& head, std::span<const std::byte> header) noexcept {
    std::memcpy(front.data(), &head, sizeof head);
    if (!header.empty()) std::memcpy(front.data() + sizeof head, header.data(), header.size());
    front_length = sizeof head + header.size();
  }
};

class Writes {
 public:
  Writes() {
    for (Write& write : all_) put(&write);
  }
  Write* take() noexcept {
    Write* write = free_;
    if (write == nullptr) return nullptr;
    free_ = write->next;
    write->next = nullptr;
    ++taken_;
    return write;
  }
  void give_back(Write* write) noexcept {
    put(write);
    --taken_;
  }
  std::size_t taken() const noexcept { return taken_; }

 private:
  void put(Write* write) noexcept {
    write->next = free_;
    free_ = write;
  }
  std::vector<Write> all_ = std::vector<Write>(kWrites);
  Write* free_ = nullptr;
  std::size_t taken_ = 0;
};

}  // namespace gdrx::tcp
