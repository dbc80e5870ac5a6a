// SPDX-License-Identifier: Apache-2.0
// What the model keeps in a run: values with what they publish, what each thread knows, and the
// choices that have led there.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/memory_order/model.hpp"

namespace gdrx::model {

// What a thread knows: events of each thread, and of each location the oldest value it may take.
struct View {
  std::array<std::uint32_t, kThreads> events{};
  std::vector<std::uint32_t> oldest;

  std::uint32_t& of(std::size_t location) {
    if (oldest.size() <= location) oldest.resize(location + 1);
    return oldest[location];
  }
  void join(const View& other) {
    for (std::size_t i = 0; i < kThreads; ++i) events[i] = std::max(events[i], other.events[i]);
    for (std::size_t i = 0; i < other.oldest.size(); ++i) of(i) = std::max(of(i), other.oldest[i]);
  }
};

struct Message {
  std::uint64_t value;
  View view;             // what an acquire of it learns
  bool changes = false;  // the one before it: nothing comes between the two
};

inline bool acquires(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst || order == std::memory_order_consume;
}
inline bool releases(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

// Choices of a run, and which run is next: depth first.
class Choices {
 public:
  std::size_t take(std::size_t options) {
    if (options == 1) return 0;
    if (at_ == path_.size()) path_.push_back({0, options});
    return path_[at_++].chosen;
  }
  bool next() {
    at_ = 0;
    while (!path_.empty() && path_.back().chosen + 1 == path_.back().options) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().chosen;
    return true;
  }

 private:
  struct Choice {
    std::size_t chosen;
    std::size_t options;
  };
  std::vector<Choice> path_;
  std::size_t at_ = 0;
};

}  // namespace gdrx::model
