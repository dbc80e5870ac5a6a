// SPDX-License-Identifier: Apache-2.0
// What streams begin, as who drives the communicator hears of it.
#include <algorithm>
#include <new>
#include <utility>

#include "collectives/comm/communicator.hpp"

namespace gdrx {

void StreamCalls::post(std::shared_ptr<Operation> operation) {
  std::list<std::shared_ptr<Operation>> one;
  one.push_back(std::move(operation));
  const std::lock_guard lock(mutex_);
  posted_.splice(posted_.end(), one);
  ++pending;
  has_posted_ = true;
}

void StreamCalls::take_posted(const std::function<void(const std::shared_ptr<Operation>&)>& queue) {
  {
    const std::lock_guard lock(mutex_);
    has_posted_ = false;
    incoming_.splice(incoming_.end(), posted_);
  }
  while (!incoming_.empty()) {
    try {
      queue(incoming_.front());
    } catch (...) {
      has_posted_ = true;
      throw;
    }
    awaited.splice(awaited.end(), incoming_, incoming_.begin());
  }
}

std::shared_ptr<Operation> StreamCalls::drop_posted() noexcept {
  const std::lock_guard lock(mutex_);
  has_posted_ = false;
  incoming_.splice(incoming_.end(), posted_);
  if (incoming_.empty()) return nullptr;
  std::shared_ptr<Operation> first = std::move(incoming_.front());
  incoming_.pop_front();
  return first;
}

void StreamCalls::look(Waiting& all, Instant now) const {
  for (const auto& operation : awaited) all.behind += operation->messages ? 1 : 0;
  if (!messages || !messages->messages->ended) return;
  all.calls.push_back({"messages of a group: the GPU has not taken them", now - messages->began});
}

std::uint32_t StreamCalls::next_kept() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::uint32_t>(captured_.size() + 1);
}

void StreamCalls::keep(CapturedCall call) {
  const std::lock_guard lock(mutex_);
  captured_.push_back(std::move(call));
}

std::shared_ptr<Operation> StreamCalls::operation_of(const gpu::CallRecord& record) const {
  std::shared_ptr<Operation> operation;
  if (record.staged == 0) {
    Call call;
    call.collective = Collective::all_reduce;
    call.count = record.count;
    call.type = static_cast<DataType>(record.type);
    call.op = static_cast<ReduceOp>(record.op);
    const std::chrono::milliseconds timeout(record.timeout_ms);
    operation = std::make_shared<Operation>(std::move(call), timeout);
  } else {
    const std::lock_guard lock(mutex_);
    const CapturedCall& captured = captured_.at(record.staged - 1);
    Call call;
    call.collective = Collective::send_recv;
    if (!captured.messages) call = captured.calls.front();
    operation = std::make_shared<Operation>(std::move(call), captured.timeout);
    operation->staged = true;
    if (captured.messages) {
      operation->messages =
          std::make_unique<StagedMessages>(StagedMessages{captured.calls, {}, {}});
    }
  }
  operation->on_hosts = true;
  return operation;
}

void StreamCalls::use_pinned(std::span<std::byte> pinned) {
  const std::lock_guard lock(mutex_);
  if (pinned.data() == pinned_.data()) return;
  pinned_ = pinned;
  pinned_is_new_ = true;
  pinned_bytes_ += pinned.size();
}

std::uint64_t StreamCalls::pinned_bytes() const {
  const std::lock_guard lock(mutex_);
  return pinned_bytes_;
}

void StreamCalls::register_pinned(RegistrationCache& cache) {
  std::span<std::byte> fresh;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(pinned_is_new_, false)) fresh = pinned_;
  }
  if (fresh.empty()) return;
  if (auto registration = cache.acquire_new(fresh, MemoryKind::host)) {
    registrations_.push_back(std::move(*registration));
  }
}

void StreamCalls::forget_registrations(RegistrationCache& cache) {
  for (const RegistrationRef& one : registrations_) cache.remove(one.get());
  registrations_.clear();
}

bool Communicator::idle() const noexcept {
  return queue_.empty() && (!pairs_ || pairs_->running().empty()) && streams_.awaited.empty() &&
         !streams_.messages;
}

bool Communicator::expects_streams() const noexcept {
  return streams_.expected() && !failure_.happened();
}

void Communicator::take_posted() {
  if (!streams_.has_posted()) return;
  try {
    streams_.take_posted([this](const std::shared_ptr<Operation>& operation) {
      if (!operation->messages) queue_.push(operation);
    });
  } catch (const std::bad_alloc&) {
    end_for_memory();
  }
  progress_lock_.pace.move(steady_clock().now());  // they may begin at once
}

// The GPU comes to its calls one after another, whoever put them into its stream.
void Communicator::hear_streams() {
  const bool begun = !streams_.running && !failure_.happened() && gpu_.flags->begun();
  take_posted();  // after that look: what has begun was posted before
  if (!begun) return;
  streams_.running = true;
  const gpu::CallRecord record = gpu_.flags->take();
  std::shared_ptr<Operation> operation;
  if (record.captured != 0) {
    operation = streams_.operation_of(record);
    ++streams_.pending;
    if (!operation->messages) queue_.push_begun(operation);
  } else if (streams_.awaited.empty()) {
    stop(Error{Errc::internal, "a stream began a call that nobody posted", 0}, true);
    return;
  } else {
    operation = std::move(streams_.awaited.front());
    streams_.awaited.pop_front();
    ++streams_.begun;  // a graph's are not before anybody's
  }
  operation->begun = true;
  if (operation->messages) begin_messages(std::move(operation));
}

void Communicator::end_of_stream_call(const Operation& operation) noexcept {
  if (!operation.on_hosts) return;
  --streams_.pending;
  if (operation.begun) streams_.running = false;
}

// Those of collectives are in the queue, too.
void Communicator::fail_awaited() noexcept {
  const auto fail_group = [this](Operation& group) {
    end_of_stream_call(group);
    for (const auto& one : group.messages->waited) fail_operation(*one);
    fail_operation(group);
  };
  for (const auto& operation : streams_.awaited) {
    if (operation->messages) fail_group(*operation);
  }
  while (const auto operation = streams_.drop_posted()) {
    if (operation->messages) {
      fail_group(*operation);
    } else {
      end_of_stream_call(*operation);
      fail_operation(*operation);
    }
  }
  streams_.awaited.clear();
  if (const auto group = std::exchange(streams_.messages, nullptr)) fail_group(*group);
}

}  // namespace gdrx
