// SPDX-License-Identifier: Apache-2.0
#include "gpu_work.hpp"

#include <c10/util/Exception.h>

#include <iterator>
#include <thread>
#include <utility>

#include "gpu.hpp"

namespace gdrx_torch {
namespace {

// A thread that waits for a GPU looks so often.
constexpr std::chrono::microseconds kLookAtGpu{20};

}  // namespace

GpuWork::GpuWork(std::shared_ptr<Gpu> gpu, int rank, Call given, std::uint64_t number)
    : c10d::Work(rank, given.type, given.title,
                 std::optional<std::vector<at::Tensor>>(given.shown)),
      call(std::move(given)),
      gpu_(std::move(gpu)),
      number_(number) {}

// Nobody waited: the stream may still be at it, whoever has forgotten the tensors.
GpuWork::~GpuWork() {
  if (!event_ || reached_ || call.inputs.empty()) return;
  std::move(call.outputs.begin(), call.outputs.end(), std::back_inserter(call.inputs));
  gpu_->shelve(std::move(*event_), std::move(call.inputs), captured_);
}

void GpuWork::begun(const Place& place) {
  stream_ = place.stream();
  captured_ = is_captured(*stream_);
  if (place.async() || blocks_host_) {
    event_.emplace(stream_->device_type());
    event_->record(*stream_);
    call.inputs.insert(call.inputs.end(), call.shown.begin(), call.shown.end());
  } else {
    call.inputs.clear();
  }
  call.shown.clear();
  call.after = nullptr;
  if (recordFunctionEndCallback_) recordFunctionEndCallback_();
}

void GpuWork::check_begun() const {
  TORCH_CHECK(stream_, "gdrx: a message in a bracket: wait for what the end of the bracket gives");
}

// A captured call runs when its graph is launched, and its event cannot be asked.
bool GpuWork::reached() {
  if (reached_ || captured_) return true;
  const BesideCaptures relaxed;
  reached_ = event_ ? event_->query() : stream_->query();
  return reached_;
}

bool GpuWork::isCompleted() {
  check_begun();
  if (reached()) return true;
  const std::string why = gpu_->failure();
  if (why.empty()) return false;
  finish(std::make_exception_ptr(c10::DistBackendError(
      {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, call.title + (": " + why))));
  return true;
}

bool GpuWork::isSuccess() const {
  const std::lock_guard lock(mutex_);
  return (reached_ || captured_) && !exception_;
}

void GpuWork::rethrow_failure() {
  const std::string why = gpu_->failure();
  if (why.empty()) return;
  C10_THROW_ERROR(DistBackendError, std::string(call.title) + " (call " + std::to_string(number_) +
                                        " of its group): " + why);
}

bool GpuWork::wait(Milliseconds timeout) {
  check_begun();
  leave_registry(*this);
  rethrow_failure();
  if (event_) event_->block(current_stream(stream_->device()));
  if ((timeout.count() > 0 || blocks_host_) && !captured_) wait_here(timeout);
  // The caller's stream is behind the call now, and so is who uses the memory next.
  call.inputs.clear();
  return true;
}

void GpuWork::wait_here(Milliseconds timeout) {
  const auto limit = Clock::now() + timeout;
  while (!reached()) {
    rethrow_failure();
    if (timeout.count() > 0 && Clock::now() >= limit) {
      C10_THROW_ERROR(DistBackendError,
                      std::string(call.title) + " timed out: it did not end within the " +
                          std::to_string(timeout.count()) + " ms of this wait; it goes on");
    }
    std::this_thread::sleep_for(kLookAtGpu);
  }
  rethrow_failure();
}

void GpuWork::abort() { gpu_->abort(); }

c10::intrusive_ptr<c10::ivalue::Future> GpuWork::getFuture() {
  check_begun();
  const std::string why = gpu_->failure();
  const std::lock_guard lock(mutex_);
  if (future_) return future_;
  future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                     std::vector<c10::Device>{stream_->device()});
  if (!why.empty()) {
    future_->setError(std::make_exception_ptr(c10::DistBackendError(
        {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)}, call.title + (": " + why))));
    return future_;
  }
  const c10::StreamGuard guard(*stream_);  // callbacks are behind what it has now
  future_->markCompleted(c10::IValue(call.outputs));
  return future_;
}

}  // namespace gdrx_torch
