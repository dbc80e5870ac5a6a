// SPDX-License-Identifier: Apache-2.0
// The writes to one peer, in order, as one stream of bytes.
#pragma once

#include "transport/tcp/ready.hpp"
#include "transport/tcp/stream.hpp"

namespace gdrx::tcp {

class Outgoing {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  void push(Write* write) noexcept;
  /// Sends what there is room for, many writes with one call. Whether anything moved.
  Result<bool> pump(Stream& stream, Rank peer, Ready& ready, Writes& writes);
  /// They will not be sent.
  void drop(Writes& writes) noexcept;

 private:
  std::size_t gather(std::span<iovec> parts) const noexcept;  // how many of `parts`
  void advance(std::size_t bytes) noexcept;

  Write* first_ = nullptr;
  Write* last_ = nullptr;
  Write* unsent_ = nullptr;  // the first that the stream has not taken whole
  std::size_t taken_ = 0;    // of it
  std::uint64_t queued_ = 0;
};

}  // namespace gdrx::tcp
