// SPDX-License-Identifier: Apache-2.0
// Collectives that only move data between pairs of ranks: a message from each rank to each that has
// a part of its buffer, all at once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/exec/call_signature.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/flows.hpp"
#include "collectives/exec/partition.hpp"

namespace gdrx::exec {

/// Which parts of this rank's buffers go to whom and come from whom. Ranks agree in pairs: who is
/// among a rank's sends has it among his receives, for as many elements, which may be none.
struct Parts {
  std::vector<Part> sends;     // of the input
  std::vector<Part> receives;  // of the output
};

struct ExchangeCall {
  CallSignature signature;
  std::size_t element = 1;           // bytes of an element
  const std::byte* input = nullptr;  // in place: equals output, and so do the parts of each rank
  std::byte* output = nullptr;
  const Parts* parts = nullptr;
};

class Exchange final : public Execution {
 public:
  /// Copies this rank's part to itself. `flows` is for this execution alone until it is gone; of
  /// one rank, null.
  static Result<std::unique_ptr<Exchange>> create(const ExchangeCall& call, Rank self,
                                                  Flows* flows);
  ~Exchange() override;
  /// That so many more receives come, to one that was created without.
  void expect(std::size_t receives) { receives_.reserve(receives); }
  Result<void> receive(const ExchangeCall& call, const Part& from);
  Result<Step> step() override;
  void on_write_done(std::uint64_t cookie) noexcept override { flows_->on_write_done(cookie); }
  const Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;
  std::vector<Rank> awaited() const override;
  /// Everything that is sent lies in registered memory.
  bool registered() const noexcept { return registered_; }

 private:
  explicit Exchange(Flows* flows) : flows_(flows) {}
  Result<void> post(Flow& flow);
  Result<void> post_receive(const ExchangeCall& call, Flow& receive);

  Flows* flows_;
  std::vector<Flow> sends_, receives_;
  std::size_t open_ = 0;
  bool registered_ = true;
  Counters counters_;
};

}  // namespace gdrx::exec
