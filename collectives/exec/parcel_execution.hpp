// SPDX-License-Identifier: Apache-2.0
// A call by parcels step by step: the arena's hop, and messages from and to the ranks that have too
// much for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/exec/exchange.hpp"
#include "collectives/exec/parcels.hpp"

namespace gdrx::exec {

class ParcelExecution final : public Execution {
 public:
  /// A rank that sends messages begins at once. `flows`: as Exchange's.
  static Result<std::unique_ptr<ParcelExecution>> create(const Parcels& begun, Flows* flows);
  Result<Step> step() override;
  void on_write_done(std::uint64_t cookie) noexcept override;
  const Counters& counters() const noexcept override { return counters_; }
  std::string waiting_for() const override;
  std::vector<Rank> awaited() const override;
  std::uint64_t end_stage(std::uint64_t) const noexcept override { return parcels_.end_stage(); }
  /// As Exchange's; an arena is none.
  bool registered() const noexcept { return parcels_.by_messages() && exchange_->registered(); }

 private:
  explicit ParcelExecution(const Parcels& begun);
  Result<bool> meet();

  Parcels parcels_;
  std::unique_ptr<Exchange> exchange_;  // of those that send messages
  std::vector<bool> met_;               // by rank
  int still_to_meet_ = 0;
  Counters counters_;
};

}  // namespace gdrx::exec
