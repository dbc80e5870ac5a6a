// SPDX-License-Identifier: Apache-2.0
#include "work.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <utility>

#include "engine.hpp"
#include "record.hpp"

namespace gdrx_torch {
namespace {

c10::intrusive_ptr<c10::ivalue::Future> list_future() {
  return c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
}

std::exception_ptr exception_of(const std::string& text) {
  return std::make_exception_ptr(
      c10::DistBackendError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, text));
}

}  // namespace

void Counted::add(const Call& call) {
  ++count;
  const auto& tensors = !call.shown.empty()    ? call.shown
                        : !call.inputs.empty() ? call.inputs
                                               : call.outputs;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
}

gdrxRequest_t* Target::request() const {
  return on_gpu() ? nullptr : &work->requests.emplace_back(nullptr);
}

void leave_registry(c10d::Work& work) {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 6
  if (c10d::allow_inflight_collective_as_graph_input()) {
    c10d::unregister_work(c10::intrusive_ptr<c10d::Work>::reclaim_copy(&work));
  }
#endif
}

Work::Work(std::shared_ptr<Engine> engine, int rank, Call given, std::uint64_t number)
    : c10d::Work(rank, given.type, given.title,
                 std::optional<std::vector<at::Tensor>>(given.shown)),
      call(std::move(given)),
      sequence(number),
      engine_(std::move(engine)) {
  const Milliseconds more = engine_->extended();
  const Milliseconds limit = (call.timeout.count() > 0 ? call.timeout : engine_->timeout()) + more;
  extended = more;
  call.timeout = limit;
  deadline = begun_ + limit;
}

bool Work::isCompleted() {
  if (!done()) engine_->turn();
  return done();
}

bool Work::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return completed_ && !exception_;
}

void Work::rethrow() {
  if (auto problem = exception()) std::rethrow_exception(problem);
}

bool Work::wait(Milliseconds timeout) {
  if (!done() && !engine_->wait_for(*this, timeout)) {
    C10_THROW_ERROR(DistBackendError,
                    std::string(call.title) + " timed out: it did not end within the " +
                        std::to_string(timeout.count()) + " ms of this wait; it goes on");
  }
  leave_registry(*this);
  rethrow();
  return true;
}

void Work::abort() { engine_->abort("the call was aborted"); }

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture() {
  const std::lock_guard lock(mutex_);
  if (future_) return future_;
  future_ = list_future();
  if (completed_) {
    if (exception_) {
      future_->setError(exception_);
    } else {
      future_->markCompleted(c10::IValue(call.outputs));
    }
  }
  return future_;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFutureResult() {
  return getFuture()->then(
      [](c10::ivalue::Future& ended) {
        const auto result =
            ended.hasError() ? c10d::WorkResult::COMM_ERROR : c10d::WorkResult::SUCCESS;
        return c10::IValue(static_cast<std::int64_t>(result));
      },
      c10::IntType::get());
}

double Work::age(Clock::time_point now) const {
  return std::chrono::duration<double>(now - begun_).count();
}

float Work::getDuration() const {
  return std::chrono::duration<float, std::milli>(ended_ - begun_).count();
}

void Work::complete() {
  std::exception_ptr problem;
  if (!error.empty()) {
    problem = exception_of(error);
  } else if (call.after) {
    try {
      const at::NoGradGuard no_grad;
      call.after();
    } catch (...) {
      problem = std::current_exception();
    }
  }
  call.after = nullptr;
  call.inputs.clear();
  call.shown.clear();
  ended_ = Clock::now();
  Record::of_process().end(recorded, source, problem != nullptr);
  if (extended.count() > 0) engine_->end_extension(extended);
  finish(problem);
  done_.store(true, std::memory_order_release);
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard lock(mutex_);
    future = future_;
  }
  if (!future || future->completed()) return;
  if (problem) {
    future->setError(problem);
  } else {
    future->markCompleted(c10::IValue(call.outputs));
  }
}

AllWork::AllWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : c10d::Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

bool AllWork::isCompleted() {
  for (const auto& work : works_) {
    if (!work->isCompleted()) return false;
  }
  return true;
}

bool AllWork::isSuccess() const {
  for (const auto& work : works_) {
    if (!work->isSuccess()) return false;
  }
  return true;
}

bool AllWork::wait(Milliseconds timeout) {
  for (const auto& work : works_) work->wait(timeout);
  return true;
}

std::vector<at::Tensor> AllWork::result() {
  std::vector<at::Tensor> all;
  for (const auto& work : works_) {
    const auto part = work->result();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

c10::intrusive_ptr<c10::ivalue::Future> AllWork::getFuture() {
  auto outputs = std::make_shared<std::vector<at::Tensor>>(result());
  std::vector<c10::Device> devices;  // a group has one GPU at most
  for (const at::Tensor& output : *outputs) {
    if (!output.is_cpu() && devices.empty()) devices.push_back(output.device());
  }
  auto all = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                      std::move(devices));
  auto left = std::make_shared<std::atomic<std::size_t>>(works_.size());
  if (works_.empty()) all->markCompleted(c10::IValue(*outputs));
  for (const auto& work : works_) {
    work->getFuture()->addCallback([all, left, outputs](c10::ivalue::Future& ended) {
      if (ended.hasError()) {
        all->setErrorIfNeeded(ended.exception_ptr());
      } else if (left->fetch_sub(1) == 1 && !all->completed()) {
        all->markCompleted(c10::IValue(*outputs));
      }
    });
  }
  return all;
}

}  // namespace gdrx_torch
