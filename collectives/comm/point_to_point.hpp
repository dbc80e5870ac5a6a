// SPDX-License-Identifier: Apache-2.0
// Sends and receives of a communicator: beside its queue, so that none waits for another, nor for a
// collective.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "collectives/comm/operation.hpp"
#include "collectives/exec/flows.hpp"
#include "transport/memory/registration_cache.hpp"

namespace gdrx {

/// Used by the thread that drives the communicator.
class PointToPoint {
 public:
  using Running = std::list<std::shared_ptr<Operation>>;

  /// Both outlive it.
  PointToPoint(exec::Links& links, RegistrationCache& cache) : cache_(cache), flows_(links) {}
  /// Of a send_recv whose stream has been waited for. Blocks for the copy of a GPU's buffer.
  Result<void> start(const std::shared_ptr<Operation>& operation);
  /// Whether the fabric has to be polled for it.
  bool busy() const noexcept { return flows_.busy(); }
  /// One round, after the fabric was polled. True: something was done.
  Result<bool> step() { return flows_.step(); }
  /// An operation that has ended since, or null. Blocks for the copy to a GPU's buffer.
  Result<std::shared_ptr<Operation>> take_ended();
  exec::Flows& flows() noexcept { return flows_; }
  const exec::Flows& flows() const noexcept { return flows_; }
  /// Of those that have not ended, the oldest first.
  const Running& running() const noexcept { return running_; }
  /// Forgets all, and returns them, whose buffers are the callers' again.
  Running stop() noexcept;
  /// Bytes of pinned memory.
  std::size_t held() const noexcept;

 private:
  void put_back(Operation& operation) noexcept;

  RegistrationCache& cache_;
  exec::Flows flows_;
  Running running_;
  std::vector<std::unique_ptr<Staging>> idle_;  // keep their memory for the next; room for all
  std::size_t stagings_ = 0;                    // idle or in use
};

}  // namespace gdrx
