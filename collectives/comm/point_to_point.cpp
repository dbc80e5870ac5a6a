// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/point_to_point.hpp"

#include <utility>

namespace gdrx {

void PointToPoint::add(const std::shared_ptr<Operation>& operation) {
  running_.push_back(operation);
  operation->place = std::prev(running_.end());
  exec::Flow& flow = operation->flow;
  flow.send = operation->call.sends;
  flow.peer = operation->call.root;
  flow.owner = operation.get();
  if (flow.peer == self_) own_unmatched_ += flow.send ? 1 : -1;
}

Result<void> PointToPoint::start(Operation& operation) {
  Call& call = operation.call;
  if (operation.staging) GDRX_TRY(operation.staging->begin(call));
  exec::Flow& flow = operation.flow;
  flow.buffer = call.sends ? const_cast<std::byte*>(call.input) : call.output;
  flow.bytes = call.count * size_of(call.type);
  flow.signature.collective = Collective::send_recv;
  flow.signature.type = call.type;
  flow.signature.count = flow.count = call.count;
  const bool by_ring = flows_.by_ring(call.root);
  operation.info.path = by_ring ? PathKind::shm : PathKind::fabric;
  operation.info.staged = operation.staging != nullptr;
  GDRX_TRY(flows_.post(flow));
  operation.info.registered = !by_ring && (flow.bytes == 0 || flow.registration != nullptr);
  return {};
}

std::shared_ptr<Operation> PointToPoint::take_ended() {
  const exec::Flow* const flow = flows_.take_ended();
  if (flow == nullptr) return nullptr;
  const std::shared_ptr<Operation> operation =
      std::move(*static_cast<Operation*>(flow->owner)->place);
  running_.erase(operation->place);
  operation->info.counters = flow->counters;
  if (operation->staging) {
    auto copied = operation->staging->end();
    operation->staging.reset();
    if (!copied) operation->error = std::move(copied).error();
  }
  return operation;
}

PointToPoint::Running PointToPoint::stop() noexcept {
  flows_.clear();
  for (const auto& operation : running_) {
    operation->flow.registration.reset();
    operation->staging.reset();
  }
  return std::exchange(running_, {});
}

}  // namespace gdrx
