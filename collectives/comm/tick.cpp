// SPDX-License-Identifier: Apache-2.0
// What the mesh's thread does for a communicator: it drives what nobody waits for.
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

using std::chrono::milliseconds;

// The mesh's thread takes over operations that nobody drives within the first of these.
constexpr milliseconds kTickActive{10};
constexpr milliseconds kTickBusy{1};  // somebody drives, who may stop without a word
constexpr milliseconds kTickIdle{200};
constexpr milliseconds kActiveFor{1000};
constexpr milliseconds kTickDriving{2};

// Steps of calls in a stream follow each other within this. Between calls GPUs compute for
// milliseconds: naps that grow with the pause, and cost the call at its end a five-hundredth of it.
constexpr std::chrono::microseconds kAwake{200};
void nap(Duration since) {
  [[maybe_unused]] thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1000UL);  // 1 us
  std::this_thread::sleep_for(
      std::clamp<Duration>(since / 500, std::chrono::microseconds(20), milliseconds(1)));
}

}  // namespace

// Nothing runs here: what the fabric has to answer to peers leaves this process all the same.
void Communicator::serve_fabric() {
  if (!device_ || failure_.happened()) return;
  auto polled = poll_device();
  if (!polled && polled.error().code != Errc::peer_lost) stop(std::move(polled).error(), true);
}

// From the mesh's thread: drives operations that nobody waits for, and lets the fabric's own
// answers leave this process after a call has returned.
Duration Communicator::on_tick() {
  std::unique_lock lock(driver_, std::try_to_lock);
  if (!lock.owns_lock()) return expects_streams() ? kTickBusy : kTickActive;
  look_at_gpu();
  look_at_spans();
  const Instant now = steady_clock().now();
  if (queue_.empty() && !expects_streams()) {
    serve_fabric();
    return now - active_ < kActiveFor ? kTickActive : kTickIdle;
  }
  active_ = now;
  const Deadline turn = Deadline::after(steady_clock(), kTickDriving);
  while ((!queue_.empty() || expects_streams()) && callers_ == 0) {
    const Instant then = steady_clock().now();
    if (turn.passed(then)) break;
    const auto moved = progress();
    idle_ = moved && *moved ? 0 : idle_ + 1;
    if (idle_ == 0) {
      moved_ = then;
    } else if (streaming_ || !expects_streams() || then - moved_ < kAwake) {
      sched_yield();
    } else {
      lock.unlock();
      nap(then - moved_);
      if (!lock.try_lock()) return kTickActive;  // whoever has it wakes this thread
    }
  }
  return queue_.empty() && !expects_streams() ? Duration(kTickActive) : Duration::zero();
}

}  // namespace gdrx
