// SPDX-License-Identifier: Apache-2.0
// What a peer sends, put in order: fragments come over several QPs in any order, messages are
// delivered in the order in which the peer posted them, each once.
#pragma once

#include <array>
#include <memory>

#include "transport/verbs/core.hpp"
#include "transport/verbs/wire.hpp"

namespace gdrx::verbs {

class Incoming {
 public:
  /// What a fragment was: a part of a message.
  struct Came {
    std::uint64_t sequence = 0;
    std::uint8_t fragment = 0;
    bool again = false;      // it had come already, and nothing was done
    bool delivered = false;  // again, after the message had been given away
  };
  Incoming(Core& core, Rank peer)
      : core_(core), peer_(peer), stored_(new std::byte[kWindow * kEagerBytes]) {}

  /// A send has landed. Its bytes are ours only during the call.
  Result<Came> on_send(std::span<const std::byte> bytes);
  /// A write with this immediate has landed. `guarded`: it may land again as long as its sender has
  /// no acknowledgement, and is not delivered before.
  Result<Came> on_signal(std::uint32_t word, bool guarded);
  /// All messages before this one have been acknowledged.
  Result<void> on_acknowledged(std::uint64_t messages);
  std::uint64_t acknowledged() const noexcept { return acknowledged_; }
  std::uint64_t delivered() const noexcept { return next_; }

 private:
  struct Arrival {
    std::uint16_t got = 0;   // bit a fragment: 0 the send, then the stripes
    std::uint16_t need = 0;  // 0: not known yet
    bool has_immediate = false;
    bool holds = false;   // stored bytes wait to be copied
    bool copied = false;  // to GPU memory that NICs do not reach
    bool guarded = false;
    std::uint32_t immediate = 0;
    Head head;
  };
  Result<Came> arrive(std::uint64_t sequence, unsigned fragment);
  Arrival& of(std::uint64_t sequence) noexcept { return window_[sequence % kWindow]; }
  Result<void> deliver();
  Result<const LocalRegion*> target_of(const Head& head);
  Result<void> copy(const Head& head, const std::byte* bytes);
  Result<void> copy_to_gpu(const Head& head);
  std::byte* stored(std::uint64_t sequence) noexcept {
    return stored_.get() + sequence % kWindow * kEagerBytes;
  }

  Core& core_;
  Rank peer_;
  std::uint64_t next_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::array<Arrival, kWindow> window_{};
  std::unique_ptr<std::byte[]> stored_;  // touched only when messages overtake each other
};

}  // namespace gdrx::verbs
