// SPDX-License-Identifier: Apache-2.0
// What the mesh's thread does for a communicator: it drives what nobody waits for.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

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
constexpr std::chrono::microseconds kTickCrowded{50};  // while another has work for the thread
constexpr milliseconds kTickWatching{1};               // a handler is due when a GPU is done

// Steps of calls in a stream follow each other within this. Between calls GPUs compute for
// milliseconds: naps that grow with the pause, and cost the call at its end a five-hundredth of it.
constexpr std::chrono::microseconds kAwake{200};
void nap(Duration since) {
  [[maybe_unused]] thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1000UL);  // 1 us
  std::this_thread::sleep_for(
      std::clamp<Duration>(since / 500, std::chrono::microseconds(20), milliseconds(1)));
}

// As mpirun binds one or two ranks. Who yields to a program that spins in cudaStreamSynchronize is
// back after the scheduler's slice, in milliseconds; who sleeps is back soon after waking up, and
// where Linux has slices of its own for each thread (6.12; others ignore it) at once.
bool only_one_processor() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) != 1) return false;
  struct {  // the kernel's first version of sched_attr
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t slice_ns, deadline, period;
  } attributes{};
  static_assert(sizeof attributes == 48);
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) == 0 &&
      attributes.policy == SCHED_OTHER) {
    attributes.slice_ns = 100'000;  // the least there is
    syscall(SYS_sched_setattr, 0, &attributes, 0);
  }
  return true;
}

}  // namespace

void Communicator::watch_peers() {
  mesh_->start({[this](const FailureNotice& notice) { on_notice(notice); },
                [this] { return on_tick(); }, [this](Rank peer) { return network_.hears(peer); }});
}

// Nothing runs here: what the fabric has to answer to peers leaves this process all the same.
void Communicator::serve_fabric() {
  if (network_.device() == nullptr || failure_.happened()) return;
  auto polled = poll_device();
  if (!polled && polled.error().code != Errc::peer_lost) stop(std::move(polled).error(), true);
}

// From the mesh's thread: drives operations that nobody waits for, and lets the fabric's own
// answers leave this process after a call has returned.
Duration Communicator::on_tick() {
  progress_lock_.suspicion.turn();
  tell_failure();
  const bool watching = endings_.look([this](Operation& operation) {
    const auto ended = reached(operation);
    return !ended || *ended;
  });
  const Duration next = tick();
  endings_.tell();
  return watching ? std::min<Duration>(next, kTickWatching) : next;
}

Duration Communicator::tick() {
  std::unique_lock lock(progress_lock_.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return expects_streams() ? kTickBusy : kTickActive;
  look_at_gpu();
  if (!failure_.happened()) gpu_.look_at_spans();
  take_posted();
  const Instant now = steady_clock().now();
  const bool work = !idle() || expects_streams();
  const Duration resting = progress_lock_.pace.resting(work, now);
  if (!work) {
    serve_fabric();
    return resting < kActiveFor ? kTickActive : kTickIdle;
  }
  thread_local const bool shared = only_one_processor();
  const bool crowded = mesh_->is_crowded();
  const Deadline turn =
      Deadline::after(steady_clock(), crowded ? Duration(kTickCrowded) : Duration(kTickDriving));
  while ((!idle() || expects_streams()) && progress_lock_.callers == 0) {
    const Instant then = steady_clock().now();
    if (turn.passed(then) || endings_.due()) break;
    if (progress_lock_.question.asked()) answer_question();
    const auto moved = progress();
    if (progress_lock_.pace.count(moved && *moved) == 0) {
      progress_lock_.pace.move(then);
    } else if (!shared && (streams_.running || !expects_streams() ||
                           progress_lock_.pace.still(then) < kAwake)) {
      sched_yield();
    } else {
      lock.unlock();
      nap(crowded ? Duration::zero() : progress_lock_.pace.still(then));
      if (!lock.try_lock()) return kTickBusy;
    }
  }
  return idle() && !expects_streams() ? Duration(kTickActive) : Duration::zero();
}

}  // namespace gdrx
