// SPDX-License-Identifier: Apache-2.0
// How a communicator fails: once, for the first reason, on every rank.
#include <fmt/format.h>

#include <exception>
#include <new>
#include <utility>

#include "collectives/comm/communicator.hpp"

namespace gdrx {

Error Communicator::stop_late(std::string what) {
  return stop(
      Error{Errc::timeout,
            fmt::format("rank {}: a call did not end within {:g} s; {} (GDRX_TIMEOUT sets "
                        "the limit)",
                        index(rank_), std::chrono::duration<double>(config_.timeout).count(), what),
            0},
      true);
}

void Communicator::fail_operation(Operation& operation) noexcept {
  try {
    operation.error = failure_.error();
  } catch (const std::bad_alloc&) {
    operation.error = Error{Errc::system, "out of memory", 0};  // short enough to need none
  }
  operation.done.store(true, std::memory_order_release);  // publishes error
}

void Communicator::fail_queue() {
  while (!queue_.empty()) {
    const std::shared_ptr<Operation> front = queue_.front();
    queue_.pop_front();
    front->execution.reset();
    plan_.end();
    end_of_stream_call(*front);
    fail_operation(*front);
  }
  if (!pairs_) return;
  for (const auto& operation : pairs_->stop()) fail_operation(*operation);
}

void Communicator::end_for_memory() noexcept {
  try {
    stop(Error{Errc::system, "out of memory", 0}, true);
  } catch (const std::exception&) {  // the failure is set; the peers see the connections end
    on_error_due_ = true;
    mesh_->wake();
  }
  fail_queue();
}

void Communicator::fail_for_memory() noexcept {
  const Driving driving(*this);
  end_for_memory();
}

// However it ends: the destructor waits until the failure was told.
struct Communicator::Due {
  explicit Due(Communicator& failed) : comm(failed) {}
  ~Due() {
    comm.on_error_due_ = true;
    comm.mesh_->wake();
  }
  Due(const Due&) = delete;
  Due& operator=(const Due&) = delete;
  Communicator& comm;
};

Error Communicator::stop(Error error, bool announce) {
  if (!failure_.set(error)) return failure_.error();
  const Due due(*this);
  const Instant failed = steady_clock().now();
  if (gpu_) gpu_->abort();
  if (announce) mesh_->announce({error.code, rank_, rank_, gdrx::describe(error)});
  if (gpu_spans_) gpu_spans_->show(failed);  // the kernels that hang end by the abort
  if (track_) track_->write(log_);           // before on_error_, which may end the process
  return error;
}

void Communicator::on_notice(const Notice& notice) {
  stop(Error{notice.code, notice.text, 0}, false);
}

void Communicator::abort() {
  stop(Error{Errc::aborted, fmt::format("rank {} aborted the communicator", index(rank_)), 0},
       true);
}

std::optional<Error> Communicator::failure() const {
  if (!failure_.happened()) return std::nullopt;
  return failure_.error();
}

}  // namespace gdrx
