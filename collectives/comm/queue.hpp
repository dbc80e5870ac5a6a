// SPDX-License-Identifier: Apache-2.0
// The collectives of a communicator that have not ended, one behind another. The first one runs.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "collectives/comm/operation.hpp"
#include "collectives/comm/sequence.hpp"

namespace gdrx {

/// Used by the thread that drives.
class Queue {
 public:
  bool empty() const noexcept { return operations_.empty(); }
  std::size_t size() const noexcept { return operations_.size(); }
  Operation& front() const noexcept { return *operations_.front(); }
  const std::shared_ptr<Operation>& back() const noexcept { return operations_.back(); }
  void push(std::shared_ptr<Operation> operation) { operations_.push_back(std::move(operation)); }
  /// One of a graph: before those that no stream has begun.
  void push_begun(std::shared_ptr<Operation> operation) {
    const auto next = std::find_if(operations_.begin(), operations_.end(),
                                   [](const auto& one) { return one->on_hosts && !one->begun; });
    operations_.insert(next, std::move(operation));
  }
  std::shared_ptr<Operation> take() noexcept {
    std::shared_ptr<Operation> first = std::move(operations_.front());
    operations_.pop_front();
    return first;
  }
  /// At the end. A request may hold its operation on.
  void let_go() noexcept {
    for (const auto& operation : operations_) operation->let_go();
    operations_.clear();
  }

  Sequence sequence;

 private:
  std::deque<std::shared_ptr<Operation>> operations_;
};

}  // namespace gdrx
