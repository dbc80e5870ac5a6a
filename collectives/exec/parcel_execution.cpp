// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/parcel_execution.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gdrx::exec {

ParcelExecution::ParcelExecution(const Parcels& begun)
    : parcels_(begun), met_(static_cast<std::size_t>(begun.ranks())) {
  for (int rank = 0; rank < begun.ranks(); ++rank) {
    met_[static_cast<std::size_t>(rank)] = !begun.takes_from(rank);
    if (begun.takes_from(rank)) ++still_to_meet_;
  }
}

Result<std::unique_ptr<ParcelExecution>> ParcelExecution::create(const Parcels& begun,
                                                                 Flows* flows) {
  auto execution = std::unique_ptr<ParcelExecution>(new ParcelExecution(begun));
  const Rank self{begun.self()};
  Parts messages;
  if (begun.by_messages()) {
    std::ranges::copy_if(begun.call().parts->sends, std::back_inserter(messages.sends),
                         [&](const Part& part) { return part.peer != self; });
  }
  ExchangeCall call = begun.call();
  call.parts = &messages;
  execution->exchange_ = GDRX_TRY(Exchange::create(call, self, flows));
  execution->exchange_->expect(begun.call().parts->receives.size());
  return execution;
}

// Whoever has come since has said whether he sends messages.
Result<bool> ParcelExecution::meet() {
  bool somebody = false;
  for (int rank = 0; rank < parcels_.ranks() && still_to_meet_ > 0; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (met_[at] || !parcels_.has_come(rank)) continue;
    GDRX_TRY(parcels_.check(rank));
    if (parcels_.sends(rank)) {
      GDRX_TRY(exchange_->receive(parcels_.call(), parcels_.part_from(rank)));
    }
    met_[at] = somebody = true;
    --still_to_meet_;
  }
  return somebody;
}

// What is in the arena is taken last: in place, it may have to be sent before.
Result<Step> ParcelExecution::step() {
  if (!parcels_.given()) {
    if (!parcels_.may_give()) return Step::idle;
    parcels_.give();
    return Step::advanced;
  }
  const bool met = still_to_meet_ > 0 && GDRX_TRY(meet());
  const Step messages = GDRX_TRY(exchange_->step());
  if (messages == Step::done && still_to_meet_ == 0 && parcels_.have_come()) {
    parcels_.end();
    counters_ = parcels_.counters();
    return Step::done;
  }
  return met || messages == Step::advanced ? Step::advanced : Step::idle;
}

void ParcelExecution::on_write_done(std::uint64_t cookie) noexcept {
  exchange_->on_write_done(cookie);
}

std::string ParcelExecution::waiting_for() const {
  if (!parcels_.given()) return exec::waiting_for(parcels_.awaited(), kToTake);
  if (still_to_meet_ == 0) return exchange_->waiting_for();
  return exec::waiting_for(parcels_.awaited(), "begin it");
}

std::vector<Rank> ParcelExecution::awaited() const {
  const bool all_met = parcels_.given() && still_to_meet_ == 0;
  return all_met ? exchange_->awaited() : parcels_.awaited();
}

}  // namespace gdrx::exec
