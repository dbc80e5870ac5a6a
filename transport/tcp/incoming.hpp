// SPDX-License-Identifier: Apache-2.0
// What one peer writes here: its stream of bytes, taken apart and carried out. The peer writes
// nothing by itself: a message names a region, and this side decides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/tcp/ready.hpp"
#include "transport/tcp/regions.hpp"
#include "transport/tcp/stream.hpp"

namespace gdrx::tcp {

class Incoming {
 public:
  struct Place {
    const Regions& regions;
    Ready& ready;
    bool drops_late;  // a write to a region that has ended is dropped, not the peer's fault
  };
  explicit Incoming(Rank peer);
  /// Takes what has come. Whether anything moved. Errc::protocol for what a peer must not say,
  /// Errc::peer_lost at the stream's end.
  Result<bool> pump(Stream& stream, const Place& place);
  /// The peer has said that nothing follows.
  bool said_goodbye() const noexcept { return goodbye_; }
  /// The region ends: what still comes for it is dropped. True if anything does.
  bool forget(std::span<const std::byte> region) noexcept;

 private:
  Result<std::size_t> receive_opened(Stream& stream, const Place& place);
  void advance(std::size_t bytes, const Place& place) noexcept;
  void stage(std::span<const std::byte> bytes) noexcept;
  Result<void> parse(std::span<const std::byte>& bytes, const Place& place);
  Result<void> parse_stage(const Place& place);
  Result<void> begin(const MessageHead& head, const Place& place);
  void end(const Place& place) noexcept;
  std::size_t staged() const noexcept { return end_ - begin_; }

  Rank peer_;
  std::vector<std::byte> stage_;
  std::size_t begin_ = 0;  // of what is staged
  std::size_t end_ = 0;
  bool in_message_ = false;
  bool goodbye_ = false;
  bool immediate_set_ = false;
  std::uint32_t immediate_ = 0;
  std::byte* to_ = nullptr;  // null: dropped
  std::uint64_t left_ = 0;   // of the message
};

}  // namespace gdrx::tcp
