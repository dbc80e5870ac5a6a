// SPDX-License-Identifier: Apache-2.0
// One running operation, driven by step().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gdrx/result.hpp"
#include "gdrx/transport.hpp"

namespace gdrx::exec {

enum class Step : std::uint8_t {
  idle,      // nothing could be done: a peer's turn
  advanced,  // something was done, and there may be more
  done,
};

/// What the execution really sent and received, to be compared with its plan.
struct Counters {
  std::uint64_t slices = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// Driven by one thread. Never blocks, never allocates in step().
class Execution {
 public:
  virtual ~Execution() = default;
  virtual Result<Step> step() = 0;
  /// A write of this execution has completed.
  virtual void on_write_done(std::uint64_t cookie) noexcept = 0;
  virtual const Counters& counters() const noexcept = 0;
  /// Whom an idle execution waits for, for a person: "rank 5 for message 3 of slice 0".
  virtual std::string waiting_for() const = 0;
  /// Those ranks, for a program; none where it does not know.
  virtual std::vector<Rank> awaited() const { return {}; }
  /// The arena's stage at which the next operation starts; `now`: at which this one did.
  virtual std::uint64_t end_stage(std::uint64_t now) const noexcept { return now; }
};

}  // namespace gdrx::exec
