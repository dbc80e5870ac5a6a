// SPDX-License-Identifier: Apache-2.0
// What the end of a path waits for.
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::chrono::microseconds kBetweenLooks{50};
// Within which the kernels of a communicator that failed end, unless the GPU is given to others.
constexpr std::chrono::milliseconds kAbortTime{10};

}  // namespace

// A running kernel reads the report, and peers' memory. Kernels of a communicator that failed end
// by themselves; what else runs on the GPU is waited for by a thread, which has then what they use.
CudaPath::~CudaPath() {
  if (!held_) return;
  const Deadline most = wait_.left_behind()   ? Deadline::after(steady_clock(), Duration::zero())
                        : held_->has_failed() ? Deadline::after(steady_clock(), kAbortTime)
                        : timeout_ns_ > 0
                            ? Deadline::after(steady_clock(), std::chrono::nanoseconds(timeout_ns_))
                            : Deadline::never();
  bool ended = false;
  try {
    ended = finish(most).has_value();
    // Who waited for an event alone left nothing for the thread that has what is still used.
    if (!ended && !wait_.left_behind()) {
      const Deadline now = Deadline::after(steady_clock(), Duration::zero());
      ended = wait_.wait(now, [] { return false; }).has_value();
    }
  } catch (const std::bad_alloc&) {  // to say why it has not
  }
  if (ended && !wait_.left_behind()) return;
  held_->close_beside();
  if (wait_.left_behind()) {
    wait_.leave(std::move(held_));
  } else {
    static_cast<void>(held_.release());  // it may be in use
  }
}

// Where somebody has seen the last call end there is nothing to wait for, and a staged one has an
// event. Else none can tell: the streams of calls may be gone, and nobody knows of a graph's
// launches.
Result<void> CudaPath::finish(Deadline deadline) {
  const std::uint64_t launched = launches_;
  const bool more = whole_device_ || has_graphs();
  if (!more && ended_->load(std::memory_order_acquire) >= launched) return {};
  // Of a communicator that fails meanwhile nobody waits for what else runs on the GPU.
  const bool had_failed = held_->has_failed();
  const auto gives_up = [&] { return !had_failed && held_->has_failed(); };
  if (!more && staged_ == launched) {
    GDRX_TRY(await_staged(deadline, gives_up));
  } else {
    GDRX_TRY(wait_.wait(deadline, gives_up));
  }
  ended_->store(launched, std::memory_order_release);
  return {};
}

Result<void> CudaPath::await_staged(Deadline deadline, const std::function<bool()>& gives_up) {
  const OnDevice here(device_);
  const AnyCapture beside;
  while (true) {
    const cudaError_t status = cudaEventQuery(held_->staged);
    if (status != cudaErrorNotReady) return check(status, "waiting for staged calls");
    cudaGetLastError();
    if (deadline.passed(steady_clock().now()) || gives_up()) {
      return fail(Errc::timeout, "a staged call's stream does not come to its end");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace gdrx::gpu
