// SPDX-License-Identifier: Apache-2.0
// What the communicator does for its sends and receives: PointToPoint runs them.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "collectives/comm/communicator.hpp"

namespace gdrx {

void Communicator::make_flows() {
  exec::Neighbours here{.processes = memory_.processes};
  if (memory_.seat) here.rings = memory_.seat->layout().rings(memory_.seat->self());
  if (here.rings) {
    here.lends = choices_.machine.cma == 2 || choices_.machine.share_cores() ||
                 here.rings->room() < exec::kMostRoom;
  }
  pairs_.emplace(network_, here);
}

// If the communicator has failed since, whoever waits finds it; so does he if this goes wrong.
void Communicator::start_pair(const std::shared_ptr<Operation>& operation) {
  begin(*operation);
  pairs_->add(operation);
  if (failure_.happened()) return fail_queue();
  if (progress_lock_.suspicion.kept()) return;
  if (auto started = pairs_->start(*operation); !started) {
    return fail_by(std::move(started).error());
  }
  if (operation->info.staged) say_why_staged(operation->call);
}

bool Communicator::step_pairs() {
  bool moved = false;
  const auto went_on = [&]() -> Result<void> {
    moved = GDRX_TRY(pairs_->step());
    while (const auto ended = pairs_->take_ended()) {
      moved = true;
      last_.was_host(ended->info);
      finish(*ended);  // publishes info
      progress_lock_.pace.stir();
      if (ended->error) return tl::unexpected(*ended->error);
    }
    if (!moved && progress_lock_.pace.is_time(kClockEvery)) GDRX_TRY(look_at_pairs_clock());
    return {};
  }();
  if (went_on) return moved;
  fail_by(went_on.error());
  return failure_.happened() || moved;
}

Result<void> Communicator::look_at_pairs_clock() const {
  const Instant now = steady_clock().now();
  for (const auto& operation : pairs_->running()) {
    if (!operation->deadline.passed(now)) continue;
    const exec::Flow& flow = operation->flow;
    return fail(
        Errc::timeout,
        fmt::format("rank {}: {} {} rank {} did not end within {:g} s; it waits for {}. The others "
                    "are alive: slow, stopped, or in another call ({})",
                    index(rank_), exec::describe(flow.signature), flow.send ? "to" : "from",
                    index(flow.peer), seconds(operation->timeout),
                    pairs_->flows().waiting_for(flow), whose_limit(operation->call)));
  }
  return {};
}

}  // namespace gdrx
