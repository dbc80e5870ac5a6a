// SPDX-License-Identifier: Apache-2.0
// The queue and who drives it. What runs in it is made in start.cpp.
#include "collectives/comm/communicator.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <new>

namespace gdrx {
namespace {

using std::chrono::milliseconds;

// Polls without result before a waiting thread gives its core away. With a core for each rank the
// answer comes within these; with fewer, each turn that a rank spins is a turn its peer does not
// run.
constexpr std::uint64_t kSpinsAlone = 4000;
constexpr std::uint64_t kSpinsShared = 8;
// While shared memory is waited for, the fabric is looked at this seldom.
constexpr std::uint64_t kFabricEvery = 32;

// The kernels of a communicator that has failed end by themselves, and at once. What else the GPU
// runs may never end: behind it the path has what they use.
constexpr milliseconds kLastKernels{10};

}  // namespace

Communicator::~Communicator() {
  if (failure_.happened()) {  // the handler is called before its communicator is gone
    mesh_->wake();
    failure_.handler.await(mesh_->is_own_thread(), [this] { tell_failure(); });
  }
  // First: its thread uses everything else, and mesh_ until it has ended, which reset() would have
  // cleared by then.
  delete mesh_.get();
  static_cast<void>(mesh_.release());
  queue_.let_go();
  if (pairs_) pairs_->stop();
  endings_.tell();
  trace_.end();
  network_.close();
  if (network_.has_registrations()) {
    streams_.forget_registrations(network_.registrations());
    gpu_.rails.give_pinned_back(network_.registrations());
  }
  if (gpu_.spans) gpu_.spans->show(Instant::max());
  try {
    trace_.write(settings_.log);
  } catch (const std::bad_alloc&) {  // there is no trace
  }
}

Communicator::Driving::Driving(const Communicator& comm) : comm_(comm) {
  ++comm_.progress_lock_.callers;
  lock_ = std::unique_lock(comm_.progress_lock_.mutex);
}

Communicator::Driving::~Driving() {
  lock_.unlock();
  --comm_.progress_lock_.callers;
  if (comm_.expects_streams()) comm_.mesh_->wake();
  comm_.endings_.tell();
}

void Communicator::Driving::tell() {
  lock_.unlock();
  comm_.endings_.tell();
  lock_.lock();
}

Result<std::shared_ptr<Operation>> Communicator::post_staged(std::shared_ptr<Operation> operation) {
  auto prepared = Staging::prepare(operation->call, size(), rank_, network_.pinned());
  if (!prepared) {
    if (prepared.error().code == Errc::unsupported) return tl::unexpected(prepared.error());
    return tl::unexpected(stop(std::move(prepared).error(), true));  // peers would wait for it
  }
  operation->staging = std::move(*prepared);
  if (!operation->own && operation->call.collective != Collective::send_recv) {
    last_.was_posted(false);
  }
  const Driving driving(*this);
  take_posted();
  if (operation->call.collective == Collective::send_recv) {
    start_pair(operation);
    return operation;
  }
  queue_.push(operation);  // if the communicator has failed since, whoever waits finds it
  if (queue_.size() > 1 || progress_lock_.suspicion.kept()) return operation;
  if (auto started = start(*operation); !started) fail_by(std::move(started).error());
  return operation;
}

Result<void> Communicator::wait(Operation& operation) { return wait(operation, wait_hook); }

Result<void> Communicator::wait(Operation& operation, WaitHook hook) {
  if (operation.mark) return wait_on_gpu(operation);
  if (operation.aside) operation.end.await_over();
  if (!operation.end.done()) GDRX_TRY(drive_to_end_of(operation, hook));
  if (operation.error) return tl::unexpected(*operation.error);
  return {};
}

Result<void> Communicator::drive_to_end_of(const Operation& operation, WaitHook hook) {
  const std::uint64_t spins = share_cores() ? kSpinsShared : kSpinsAlone;
  Driving driving(*this);
  StreamPatience patience;
  std::uint64_t rounds = 0;
  progress_lock_.pace.restart();
  while (!operation.end.done()) {
    if (endings_.due()) driving.tell();
    if (progress_lock_.question.asked()) answer_question();
    const std::uint64_t idle = progress_lock_.pace.count(GDRX_TRY(progress()));
    // Something may move all the time: calls of graphs.
    if (idle > spins || ++rounds % kClockEvery == 0) look_at_stream(operation, patience);
    if (idle > spins) {
      if (mesh_->is_own_thread()) {  // in a handler: it hears of nothing but by this
        mesh_->serve();
        progress_lock_.suspicion.turn();
      } else if (hook.run != nullptr) {
        hook.run(hook.user, idle);
      }
      sched_yield();
    }
  }
  return {};
}

Result<Progress> Communicator::test(Operation& operation) {
  if (operation.mark) {
    GDRX_TRY(reached(operation));
  } else if (!operation.aside && !operation.end.done()) {
    const std::unique_lock lock(progress_lock_.mutex, std::try_to_lock);
    if (lock.owns_lock()) progress_lock_.pace.count(GDRX_TRY(progress()));
  }
  endings_.tell();
  if (!operation.end.done()) return Progress::pending;
  if (operation.error) return tl::unexpected(*operation.error);
  return Progress::done;
}

Result<void> Communicator::drain(WaitHook hook) {
  while (true) {
    std::shared_ptr<Operation> last;
    {
      const Driving driving(*this);
      take_posted();
      if (idle()) break;
      last = !queue_.empty()             ? queue_.back()
             : !streams_.awaited.empty() ? streams_.awaited.back()
             : streams_.messages         ? streams_.messages
                                         : pairs_->running().back();
    }
    GDRX_TRY(wait(*last, hook));
  }
  look_at_gpu();
  Result<void> ended;
  if (gpu_.path && !failure_.happened())
    ended = gpu_.path->finish(waiters_deadline(settings_.timeout));
  // It may have failed meanwhile.
  if (gpu_.path && failure_.happened())
    ended = gpu_.path->finish(Deadline::after(steady_clock(), kLastKernels));
  // Before a peer hears of the end: no graph here waits for one that has gone.
  if (gpu_.path && ended) gpu_.path->close();
  look_at_gpu();  // a kernel that gave up has ended like any other
  if (failure_.happened()) return tl::unexpected(failure_.error());
  return ended;
}

Result<bool> Communicator::progress() {
  try {
    return make_progress();
  } catch (const std::bad_alloc&) {
    end_for_memory();
    return true;
  }
}

// One round: the failure, the fabric, the running operation. progress_lock_.mutex is held.
Result<bool> Communicator::make_progress() {
  if (gpu_.flags && (gpu_.rails.hierarchy() || streams_.expected())) {
    look_at_gpu();
    hear_streams();
  }
  if (failure_.happened()) fail_queue();
  if (progress_lock_.suspicion.kept()) {
    if (still_suspected(*progress_lock_.suspicion.kept())) return false;
    fail_by(*progress_lock_.suspicion.take());
    return true;
  }
  const bool pairs = pairs_ && pairs_->busy();
  if (queue_.empty() || (queue_.front().on_hosts && !queue_.front().begun)) {
    serve_fabric();
    const bool moved = pairs && step_pairs();
    return step_messages() || moved;
  }
  Operation& front = queue_.front();
  if (front.on_hosts && !front.execution) {
    auto started = start(front);
    if (!started) fail_by(std::move(started).error());  // its kernels are in the stream
    return true;
  }
  const bool on_fabric = (pairs && pairs_->on_fabric()) || front.info.path == PathKind::fabric;
  // A rank that is alone has nobody to hear from.
  if (network_.device() && size() > 1 && (on_fabric || progress_lock_.pace.is_time(kFabricEvery))) {
    auto polled = poll_device();
    if (!polled && !still_suspected(polled.error())) {
      fail_by(std::move(polled).error());
      return true;
    }
  }
  bool moved = pairs && step_pairs();
  moved = step_messages() || moved;
  return (!queue_.empty() && step_front(front)) || moved;
}

// True: something was done.
bool Communicator::step_front(Operation& front) {
  auto step = front.execution->step();
  if (!step) {
    fail_by(std::move(step).error());
    return failure_.happened();
  }
  switch (*step) {
    case exec::Step::advanced:
      return true;
    case exec::Step::done:
      if (front.staging) {
        if (auto copied = front.staging->end(); !copied) {
          fail_by(std::move(copied).error());
          return true;
        }
      }
      finish_front();
      return true;
    case exec::Step::idle:
      break;
  }
  if (progress_lock_.pace.is_time(kClockEvery)) {
    if (auto looked = look_at_clock(front); !looked) {
      fail_by(std::move(looked).error());
      return true;
    }
  }
  return false;
}

Result<void> Communicator::poll_device() {
  for (const Completion& completion : GDRX_TRY(network_.poll())) {
    switch (completion.kind) {
      case CompletionKind::immediate:
        if (gpu_.rails.direct() != nullptr && exec::Rail::is_mine(completion.immediate)) {
          GDRX_TRY(gpu_.rails.direct()->arrived(completion.peer, completion.immediate));
        } else {
          GDRX_TRY(network_.receive_ring().arrived(completion.peer, completion.immediate));
        }
        break;
      case CompletionKind::write_done:
        if (pairs_ && pairs_->flows().is_mine(completion.cookie)) {
          pairs_->flows().on_write_done(completion.cookie);
        } else if (completion.cookie != exec::kNoCookie && !queue_.empty() &&
                   queue_.front().execution) {
          queue_.front().execution->on_write_done(completion.cookie);
        }
        break;
    }
  }
  return {};
}

Result<void> Communicator::look_at_clock(const Operation& front) {
  GDRX_TRY(look_for_strays());
  if (!front.deadline.passed(steady_clock().now())) return {};
  return fail(
      Errc::timeout,
      fmt::format("rank {}: {} did not end within {:g} s; it waits for {}. The others are "
                  "alive: slow, stopped, or in another call ({})",
                  index(rank_), exec::describe(queue_.sequence.signature()), seconds(front.timeout),
                  front.execution->waiting_for(), whose_limit(front.call)));
}

// A peer that made another call may leave us waiting for ever: look at what it published, or sent
// on a lane where nothing is expected.
Result<void> Communicator::look_for_strays() {
  if (memory_.seat) GDRX_TRY(memory_.seat->look_for_others());
  if (network_.has_receive_ring()) {
    Rank peer{};
    if (const exec::MessageHeader* stray =
            network_.receive_ring().find_stray(queue_.sequence.signature(), peer);
        stray != nullptr) {
      return exec::check_signature(stray->signature, peer, queue_.sequence.signature(), rank_);
    }
  }
  return {};
}

// The front operation is done: start what waits behind it.
void Communicator::finish_front() {
  const std::shared_ptr<Operation> front = queue_.take();
  if (front->execution) {
    front->info.counters = front->execution->counters();
    queue_.sequence.end_stage(front->execution->end_stage(queue_.sequence.stage()));
    front->execution.reset();
  }
  front->staging.reset();
  trace_.end();
  end_of_stream_call(*front);
  if (!front->own) last_.was_host(front->info);
  finish(*front);  // publishes info
  progress_lock_.pace.stir();
  if (queue_.empty() || queue_.front().on_hosts) return;  // a stream begins the next
  if (auto started = start(queue_.front()); !started) fail_by(std::move(started).error());
}

OperationInfo Communicator::last_operation() const {
  {
    const std::lock_guard lock(gpu_.mutex);
    if (const auto info = last_.gpu()) return *info;
  }
  const Driving driving(*this);
  return last_.host();
}

Heritage Communicator::heritage(const Config& config) const noexcept {
  const bool alike = config.transport == settings_.config.transport &&
                     config.shared_memory == settings_.config.shared_memory &&
                     config.cma == settings_.config.cma;
  const bool memory =
      alike && choices_.machine.shm && network_.fabric() && network_.fabric()->name() == "shm";
  return {memory, memory && choices_.machine.cma > 0, {}};
}

}  // namespace gdrx
