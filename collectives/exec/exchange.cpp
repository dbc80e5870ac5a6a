// SPDX-License-Identifier: Apache-2.0
#include "collectives/exec/exchange.hpp"

#include <algorithm>

#include "collectives/reduce/reducer.hpp"

namespace gdrx::exec {
namespace {

Flow flow_of(const ExchangeCall& call, const Part& part, bool sends) {
  Flow flow;
  flow.send = sends;
  flow.peer = part.peer;
  // a send only reads it
  std::byte* const buffer = sends ? const_cast<std::byte*>(call.input) : call.output;
  flow.buffer = buffer + part.range.begin * call.element;
  flow.bytes = part.range.count * call.element;
  flow.signature = call.signature;
  flow.count = part.range.count;
  return flow;
}

std::vector<Flow> flows_of(const ExchangeCall& call, const std::vector<Part>& parts, Rank self,
                           bool sends) {
  std::vector<Flow> flows;
  flows.reserve(parts.size());
  // From the next rank on, so that not all send to the same one first.
  const auto after =
      std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.peer > self; });
  const auto add = [&](const Part& part) {
    if (part.peer != self) flows.push_back(flow_of(call, part, sends));
  };
  std::for_each(after, parts.end(), add);
  std::for_each(parts.begin(), after, add);
  return flows;
}

void copy_own(const ExchangeCall& call, Rank self) {
  const auto own = [&](const Part& part) { return part.peer == self; };
  const auto& [sends, receives] = *call.parts;
  const auto from = std::find_if(sends.begin(), sends.end(), own);
  const auto to = std::find_if(receives.begin(), receives.end(), own);
  if (from == sends.end() || to == receives.end()) return;
  const std::byte* const source = call.input + from->range.begin * call.element;
  std::byte* const target = call.output + to->range.begin * call.element;
  if (source != target) reduce::copy(target, source, from->range.count * call.element);
}

}  // namespace

Result<std::unique_ptr<Exchange>> Exchange::create(const ExchangeCall& call, Rank self,
                                                   Flows* flows) {
  auto exchange = std::unique_ptr<Exchange>(new Exchange(flows));
  exchange->sends_ = flows_of(call, call.parts->sends, self, true);
  for (Flow& flow : exchange->sends_) GDRX_TRY(exchange->post(flow));
  exchange->receives_ = flows_of(call, call.parts->receives, self, false);
  for (Flow& flow : exchange->receives_) GDRX_TRY(exchange->post_receive(call, flow));
  copy_own(call, self);
  return exchange;
}

Result<void> Exchange::receive(const ExchangeCall& call, const Part& from) {
  receives_.push_back(flow_of(call, from, false));
  return post_receive(call, receives_.back());
}

Result<void> Exchange::post_receive(const ExchangeCall& call, Flow& receive) {
  if (call.input == call.output) {
    const auto same = std::find_if(sends_.begin(), sends_.end(),
                                   [&](const Flow& send) { return send.peer == receive.peer; });
    if (same != sends_.end()) receive.behind = &*same;
  }
  return post(receive);
}

Result<void> Exchange::post(Flow& flow) {
  GDRX_TRY(flows_->post(flow));
  ++open_;
  if (flow.send && flow.bytes > 0 && !flow.registration) registered_ = false;
  return {};
}

Exchange::~Exchange() {
  if (flows_ != nullptr && flows_->busy()) flows_->clear();
}

Result<Step> Exchange::step() {
  if (flows_ == nullptr) return Step::done;
  const bool moved = GDRX_TRY(flows_->step());
  while (const Flow* ended = flows_->take_ended()) {
    --open_;
    counters_.slices = std::max(counters_.slices, ended->counters.slices);
    counters_.sent += ended->counters.sent;
    counters_.received += ended->counters.received;
  }
  if (open_ == 0 && !flows_->busy()) return Step::done;
  return moved ? Step::advanced : Step::idle;
}

std::vector<Rank> Exchange::awaited() const {
  std::vector<Rank> ranks;
  for (const auto* flows : {&receives_, &sends_}) {
    for (const Flow& flow : *flows) {
      if (!flow.handed_over) ranks.push_back(flow.peer);
    }
  }
  return ranks;
}

std::string Exchange::waiting_for() const {
  for (const auto* flows : {&receives_, &sends_}) {
    for (const Flow& flow : *flows) {
      if (!flow.ended()) return flows_->waiting_for(flow);
    }
  }
  return "credits to be returned";
}

}  // namespace gdrx::exec
