// SPDX-License-Identifier: Apache-2.0
// How a communicator fails: once, for the first reason, on every rank.
#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "collectives/comm/communicator.hpp"

namespace gdrx {
namespace {

// Peers hear of it though there is no memory for all of its words.
Text told(const Error& error) noexcept {
  try {
    return gdrx::describe(error);
  } catch (const std::bad_alloc&) {
    return error.what;
  }
}

}  // namespace

void Communicator::fail_operation(Operation& operation) noexcept {
  operation.error = failure_.error();
  finish(operation);
}

// Publishes error and info.
void Communicator::finish(Operation& operation) noexcept {
  if (operation.end.finish()) endings_.add(operation.shared_from_this());
}

Result<void> Communicator::on_done(Operation& operation, Ending::Handler handler) {
  if (operation.mark) endings_.watch(operation.shared_from_this());
  operation.end.set_owner(this);
  if (operation.end.arm(std::move(handler))) {
    operation.end.tell(operation.error);
  } else if (operation.mark) {
    mesh_->wake();
  }
  return {};
}

void Communicator::end(Operation& operation, const Result<void>& ended) noexcept {
  if (operation.end.over()) return;
  {
    const std::lock_guard lock(endings_.marks);
    if (!operation.end.done()) {
      if (!ended) operation.error = ended.error();
      finish(operation);
    }
  }
  operation.end.wake();
  endings_.tell();
  operation.end.await_over();
}

void Communicator::fail_queue() {
  while (!queue_.empty()) {
    const std::shared_ptr<Operation> front = queue_.take();
    front->let_go();
    trace_.end();
    end_of_stream_call(*front);
    fail_operation(*front);
  }
  fail_awaited();
  if (!pairs_) return;
  for (const auto& operation : pairs_->stop()) fail_operation(*operation);
}

bool Communicator::still_suspected(const Error& error) {
  return progress_lock_.suspicion.lasts(error, [this] { mesh_->wake(); });
}

// Until the mesh has spoken nothing is begun or gone on with: what failed would fail again. It ends
// in a failure, the mesh's or this one.
void Communicator::fail_by(Error error) {
  if (still_suspected(error)) {
    progress_lock_.suspicion.keep(std::move(error));
    return;
  }
  stop(std::move(error), true);
  fail_queue();
}

void Communicator::end_for_memory() noexcept {
  stop(no_memory(), true);
  fail_queue();
}

void Communicator::fail_for_memory() noexcept {
  const Driving driving(*this);
  end_for_memory();
}

void Communicator::tell_failure() {
  if (failure_.handler.is_due()) failure_.handler.tell(failure_.error());
}

Error Communicator::stop(Error error, bool announce, Blame blame) noexcept {
  if (!failure_.set(error, blame)) return failure_.error();
  // However it ends: the destructor waits until the failure was told.
  struct Due {
    ~Due() {
      comm.failure_.handler.make_due();
      comm.mesh_->wake();
    }
    Communicator& comm;
  };
  const Due due{*this};
  const Instant failed = steady_clock().now();
  if (gpu_.path) gpu_.path->abort();
  try {
    if (announce) mesh_->announce({error.code, rank_, rank_, told(error)});
    if (gpu_.spans) gpu_.spans->show(failed);  // the kernels that hang end by the abort
    trace_.write(settings_.log);               // before failure_.handler, which may end the process
  } catch (const std::exception&) {            // peers see the connections end
  }
  return error;
}

void Communicator::on_notice(const FailureNotice& notice) {
  Blame blame{index(notice.origin)};
  if (notice.code == Errc::peer_lost) blame.subject = index(notice.subject);
  stop(Error{notice.code, notice.text, 0}, false, blame);
}

std::shared_ptr<Operation> Communicator::operation_aside() const {
  auto operation = operation_of({});
  operation->aside = operation->own = true;
  return operation;
}

void Communicator::abort() {
  stop(Error{Errc::aborted, fmt::format("rank {} aborted the communicator", index(rank_)), 0},
       true);
}

std::optional<Error> Communicator::failure() const noexcept {
  if (!failure_.happened()) return std::nullopt;
  return failure_.error();
}

std::optional<Error> Communicator::async_error() noexcept {
  try {
    look_at_gpu();  // a kernel that gave up has ended like any other
    return failure();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace gdrx
