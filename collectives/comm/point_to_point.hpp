// SPDX-License-Identifier: Apache-2.0
// Sends and receives of a communicator: beside its queue, so that none waits for another, nor for a
// collective.
#pragma once

#include <atomic>
#include <list>
#include <memory>

#include "collectives/comm/operation.hpp"
#include "collectives/exec/flows.hpp"

namespace gdrx {

/// Used by the thread that drives the communicator.
class PointToPoint {
 public:
  using Running = std::list<std::shared_ptr<Operation>>;

  /// All that these are or point to outlives it.
  PointToPoint(exec::Links& links, const exec::Neighbours& here)
      : flows_(links, exec::FlowLanes::of_pairs(links.shape()), here),
        exchange_(links, exec::FlowLanes::of_plans(links.shape())),
        self_(links.self()) {}
  /// Of a send_recv: from now on one of the running, which stop() ends, started or not.
  void add(const std::shared_ptr<Operation>& operation);
  /// Its stream has been waited for. Blocks for the copy of a GPU's buffer.
  Result<void> start(Operation& operation);
  /// Whether there is something to step.
  bool busy() const noexcept { return flows_.busy(); }
  /// Whether the fabric has to be polled for it.
  bool on_fabric() const noexcept { return flows_.on_fabric(); }
  /// One round, after the fabric was polled. True: something was done.
  Result<bool> step() { return flows_.step(); }
  /// An operation that has ended since, or null; it has an error if the copy to a GPU's buffer,
  /// for which this blocks, went wrong.
  std::shared_ptr<Operation> take_ended();
  /// Of messages to oneself there were as many sends as receives. Any thread.
  bool own_matched() const noexcept { return own_unmatched_ == 0; }
  exec::Flows& flows() noexcept { return flows_; }
  const exec::Flows& flows() const noexcept { return flows_; }
  /// Of the collective that runs.
  exec::Flows& exchange() noexcept { return exchange_; }
  /// Of those that have not ended, the oldest first.
  const Running& running() const noexcept { return running_; }
  /// Forgets all, and returns them, whose buffers are the callers' again.
  Running stop() noexcept;

 private:
  exec::Flows flows_;
  exec::Flows exchange_;
  Rank self_;
  std::atomic<int> own_unmatched_{0};
  Running running_;
};

}  // namespace gdrx
