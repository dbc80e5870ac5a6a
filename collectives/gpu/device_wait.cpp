// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/device_wait.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "collectives/gpu/error.hpp"

namespace gdrx::gpu {

struct DeviceWait::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<cudaError_t> status;
  std::unique_ptr<Kept> kept;
};

Result<void> DeviceWait::wait(int device, Deadline deadline) {
  if (state_) GDRX_TRY(await(device, deadline));  // for what there was then
  state_ = std::make_shared<State>();
  try {
    std::thread([device, state = state_] {
      cudaError_t status = cudaSetDevice(device);
      if (status == cudaSuccess) status = cudaDeviceSynchronize();
      const auto kept = [&] {
        const std::lock_guard lock(state->mutex);
        state->status = status;
        state->changed.notify_all();
        return std::move(state->kept);
      }();
    }).detach();
  } catch (const std::system_error& error) {
    state_.reset();
    return fail(Errc::system, "a thread that waits for the GPU", error.code().value());
  } catch (...) {  // out of memory: nobody will say that it ended
    state_.reset();
    throw;
  }
  return await(device, deadline);
}

void DeviceWait::leave(std::unique_ptr<Kept> kept) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (!state_->status) state_->kept.swap(kept);
}

Result<void> DeviceWait::await(int device, Deadline deadline) {
  std::unique_lock lock(state_->mutex);
  while (!state_->status) {
    const Duration left = deadline.left(steady_clock().now());
    if (left == Duration::zero()) {
      return fail(Errc::timeout,
                  fmt::format("what this process runs on GPU {} does not end: its own kernels, or "
                              "another communicator's (GDRX_TIMEOUT sets the limit)",
                              device));
    }
    state_->changed.wait_for(lock, std::min<Duration>(left, std::chrono::seconds(1)));
  }
  const cudaError_t status = *state_->status;
  lock.unlock();
  state_.reset();
  return check(status, "cudaDeviceSynchronize");
}

}  // namespace gdrx::gpu
