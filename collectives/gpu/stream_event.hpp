// SPDX-License-Identifier: Apache-2.0
// A place in a stream, by an event.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/gpu/path.hpp"

namespace gdrx::gpu {

class StreamEvent final : public Event {
 public:
  /// `device`: the stream's, and current. All of `launches` ends before it, which `ended` hears.
  static Result<std::unique_ptr<Event>> create(cudaStream_t stream, int device,
                                               std::uint64_t launches,
                                               std::shared_ptr<std::atomic<std::uint64_t>> ended) {
    std::unique_ptr<StreamEvent> mark(new StreamEvent);
    mark->device_ = device;
    mark->launches_ = launches;
    mark->ended_ = std::move(ended);
    GDRX_TRY(
        check(cudaEventCreateWithFlags(&mark->event_, cudaEventDisableTiming), "cudaEventCreate"));
    GDRX_TRY(check(cudaEventRecord(mark->event_, stream), "cudaEventRecord"));
    return mark;
  }
  ~StreamEvent() override {
    const OnDevice here(device_);
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  // A thread that has used no GPU yet would make itself a context on the first one.
  Result<bool> reached() override {
    const OnDevice here(device_);
    const AnyCapture allowed;
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    GDRX_TRY(check(status, "waiting for the GPU"));
    std::uint64_t before = ended_->load(std::memory_order_relaxed);
    while (before < launches_ && !ended_->compare_exchange_weak(before, launches_)) {
    }
    return true;
  }
  Result<void> hold(void* stream) override {
    const OnDevice here(device_);
    return check(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), event_, 0),
                 "cudaStreamWaitEvent");
  }

 private:
  StreamEvent() = default;
  cudaEvent_t event_ = nullptr;
  int device_ = 0;
  std::uint64_t launches_ = 0;
  std::shared_ptr<std::atomic<std::uint64_t>> ended_;
};

}  // namespace gdrx::gpu
