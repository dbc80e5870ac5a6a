// SPDX-License-Identifier: Apache-2.0
// How long who waits goes on waiting for a stream. The deadline of a call begins with it: for a
// stream that never comes to it, or to one before it, whoever waits has one.
#include <fmt/format.h>
#include <sched.h>

#include <new>
#include <utility>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

// Of the timeout. Calls of graphs that run meanwhile may stand before the awaited one in its
// stream, and then each gives it time anew; or beside it, and then they may come for ever. Which,
// nobody tells: as long as this they are believed to stand before it.
constexpr int kMostGraphs = 100;

}  // namespace

// What a stream has to begin before the operation can go on; null: nothing. A call that has begun
// has a deadline of its own, and those behind it wait for that.
const Operation* Communicator::behind_stream(const Operation& operation) const noexcept {
  if (streams_.running || (operation.on_hosts && operation.begun)) return nullptr;
  const bool messages = operation.messages || operation.call.collective == Collective::send_recv;
  if (messages) return operation.on_hosts ? &operation : nullptr;  // beside the queue
  if (queue_.empty()) return nullptr;
  const Operation& front = queue_.front();
  return front.on_hosts && !front.begun ? &front : nullptr;
}

void Communicator::look_at_stream(const Operation& operation, StreamPatience& patience) {
  const Operation* const what = behind_stream(operation);
  if (streams_.begun != patience.begun) patience = {nullptr, streams_.begun, Deadline::never(), {}};
  if (what != patience.what) {
    patience.what = what;
    if (what != nullptr) patience.deadline = waiters_deadline(operation.timeout);
    if (what != nullptr && !patience.last) {
      patience.last = waiters_deadline(operation.timeout * kMostGraphs);
    }
  }
  const Instant now = steady_clock().now();
  if (what == nullptr || !(patience.deadline.passed(now) || patience.last->passed(now))) return;
  stop_late(operation, what == &operation
                           ? "its stream has not come to it: what was put there before it does not "
                             "end"
                           : "it waits for a call before it, whose stream has not come to that "
                             "call: what was put there before does not end");
  fail_queue();
}

void Communicator::look_at_mark(Operation& operation, StreamPatience& patience) {
  if (patience.what != &operation) {
    patience = {&operation, 0, waiters_deadline(operation.timeout), {}};
  }
  if (!patience.deadline.passed(steady_clock().now())) return;
  const Error late = stop_late(operation,
                               "its stream has not come to its end: what was put there before it "
                               "does not end");
  end(operation, tl::unexpected(late));
}

Error Communicator::stop_late(const Operation& operation, std::string_view what) noexcept {
  Error late{Errc::timeout, "a call did not end in time: its stream does not come to it", 0};
  try {
    late.what = fmt::format("rank {}: a call did not end within {:g} s; {} ({})", index(rank_),
                            seconds(operation.timeout), what, whose_limit(operation.call));
  } catch (const std::bad_alloc&) {  // fewer words
  }
  return stop(std::move(late), true);
}

Result<void> Communicator::wait_on_gpu(Operation& operation) {
  StreamPatience patience;
  while (!GDRX_TRY(reached(operation))) {
    if (mesh_->is_own_thread()) mesh_->serve();
    sched_yield();
    look_at_mark(operation, patience);
  }
  endings_.tell();
  if (operation.error) return tl::unexpected(*operation.error);
  return {};
}

Result<Progress> Communicator::test(Operation& operation, StreamPatience& patience) {
  const Progress state = GDRX_TRY(test(operation));
  if (state == Progress::done || operation.aside || !gpu_.path) return state;
  if (operation.mark) {
    look_at_mark(operation, patience);
  } else if (const std::unique_lock lock(progress_lock_.mutex, std::try_to_lock);
             lock.owns_lock()) {
    look_at_stream(operation, patience);
  }
  return state;
}

}  // namespace gdrx
