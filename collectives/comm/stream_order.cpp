// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/stream_order.hpp"

#include <algorithm>
#include <utility>

namespace gdrx {

// A piece takes levels + 2 steps, and its slot is free for the one kAhead later.
StreamOrder::StreamOrder(std::uint64_t pieces, std::uint32_t levels,
                         std::vector<std::uint32_t> sums)
    : pieces_(pieces),
      levels_(levels),
      sums_(std::move(sums)),
      stride_((levels + 2 + kAhead - 1) / kAhead) {}

std::optional<StreamOrder::Item> StreamOrder::next() {
  while (taken_ == items_.size()) {
    if (step_ > (pieces_ - 1) * stride_ + levels_ + 1) return std::nullopt;
    begin_step();
  }
  return items_[taken_++];
}

// The youngest piece first: its part is what the network waits for.
void StreamOrder::begin_step() {
  items_.clear();
  taken_ = 0;
  const std::uint64_t youngest = std::min(step_ / stride_, pieces_ - 1);
  for (std::uint64_t piece = youngest + 1; piece-- > 0;) {
    const std::uint64_t age = step_ - piece * stride_;
    if (age > levels_ + 1) break;
    if (age == 0) items_.push_back({Kind::scatter, piece, 0});
    for (std::uint32_t sum = 0; sum < sums_.size(); ++sum) {
      if (sums_[sum] == age) items_.push_back({Kind::add, piece, sum});
    }
    if (age == levels_ + 1) items_.push_back({Kind::gather, piece, 0});
  }
  ++step_;
}

}  // namespace gdrx
