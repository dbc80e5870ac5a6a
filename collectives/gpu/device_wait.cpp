// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/device_wait.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/own_thread.hpp"
#include "collectives/gpu/error.hpp"

namespace gdrx::gpu {
namespace {

constexpr std::chrono::milliseconds kLookUp{20};  // from a wait: whether to give it up

}  // namespace

/// Of one path, once at a time. All but `waiter` and `next` is guarded by the waiter's mutex.
struct DeviceWait::Request {
  std::shared_ptr<Waiter> waiter;
  std::shared_ptr<Request> next;  // of those that wait for the same end
  bool posted = false;            // and its end not taken
  std::optional<cudaError_t> status;
  std::unique_ptr<Kept> kept;
};

/// A GPU's thread. It ends with the last path that may ask it.
class DeviceWait::Waiter {
 public:
  static Result<std::shared_ptr<Waiter>> of(int device);

  void post(std::shared_ptr<Request> request);
  Result<void> await(Request& request, Deadline deadline, const std::function<bool()>& gives_up);
  bool is_posted(const Request& request);
  void leave(Request& request, std::unique_ptr<Kept> kept);
  void release();

 private:
  Waiter(int device, pid_t process) noexcept : device_(device), process_(process) {}
  static Result<std::shared_ptr<Waiter>> start(int device);
  bool retain();
  void run();
  void tell(std::shared_ptr<Request> ended, cudaError_t status);
  static void drop(std::unique_ptr<Kept> kept, cudaError_t status) noexcept;

  const int device_;
  const pid_t process_;  // a child of fork() has no such thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Request> waiting_;  // for a wait that begins after them
  int users_ = 1;
  bool over_ = false;
};

Result<std::shared_ptr<DeviceWait::Waiter>> DeviceWait::Waiter::of(int device) {
  struct Known {
    std::mutex mutex;
    std::vector<std::weak_ptr<Waiter>> all;  // by device
  };
  static Known& known = *new Known;  // never destroyed: a path may outlive main()
  const std::lock_guard lock(known.mutex);
  const auto index = static_cast<std::size_t>(device);
  if (known.all.size() <= index) known.all.resize(index + 1);
  if (auto waiter = known.all[index].lock(); waiter && waiter->retain()) return waiter;
  auto waiter = GDRX_TRY(start(device));
  known.all[index] = waiter;
  return waiter;
}

Result<std::shared_ptr<DeviceWait::Waiter>> DeviceWait::Waiter::start(int device) {
  std::shared_ptr<Waiter> waiter(new Waiter(device, getpid()));
  try {
    OwnThread("gdrx-gpu-wait", [waiter] { waiter->run(); }).detach();
  } catch (const std::system_error& error) {
    return fail(Errc::system, "a thread that waits for the GPU", error.code().value());
  }
  return waiter;
}

bool DeviceWait::Waiter::retain() {
  if (process_ != getpid()) return false;
  const std::lock_guard lock(mutex_);
  if (over_) return false;
  ++users_;
  return true;
}

void DeviceWait::Waiter::release() {
  const std::lock_guard lock(mutex_);
  --users_;
  changed_.notify_all();
}

void DeviceWait::Waiter::run() {
  std::unique_lock lock(mutex_);
  while (waiting_ || users_ > 0) {
    if (!waiting_) {
      changed_.wait(lock);
      continue;
    }
    auto ended = std::exchange(waiting_, nullptr);
    lock.unlock();
    cudaError_t status = cudaSetDevice(device_);
    if (status == cudaSuccess) status = cudaDeviceSynchronize();
    tell(std::move(ended), status);
    lock.lock();
  }
  over_ = true;
}

// Everybody is told before anything is destroyed, which may have to wait for a kernel that needs
// one of them to go on. A request with something kept is posted no more, so that its `next` stays.
void DeviceWait::Waiter::tell(std::shared_ptr<Request> ended, cudaError_t status) {
  std::shared_ptr<Request> left;
  {
    const std::lock_guard lock(mutex_);
    while (ended) {
      auto next = std::exchange(ended->next, nullptr);
      ended->status = status;
      if (ended->kept) {
        ended->next = std::move(left);
        left = std::move(ended);
      }
      ended = std::move(next);
    }
    changed_.notify_all();
  }
  while (left) {
    drop(std::move(left->kept), status);
    left = std::exchange(left->next, nullptr);
  }
}

// Of a wait that CUDA refused nobody knows whether its kernels have ended: what they use stays.
void DeviceWait::Waiter::drop(std::unique_ptr<Kept> kept, cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(kept.release());
}

void DeviceWait::Waiter::post(std::shared_ptr<Request> request) {
  const std::lock_guard lock(mutex_);
  request->posted = true;
  request->status.reset();
  request->next = std::move(waiting_);
  waiting_ = std::move(request);
  changed_.notify_all();
}

bool DeviceWait::Waiter::is_posted(const Request& request) {
  const std::lock_guard lock(mutex_);
  return request.posted;
}

void DeviceWait::Waiter::leave(Request& request, std::unique_ptr<Kept> kept) {
  std::unique_lock lock(mutex_);
  if (!request.status) {
    request.kept = std::move(kept);
    return;
  }
  const cudaError_t status = *request.status;
  lock.unlock();
  drop(std::move(kept), status);
}

Result<void> DeviceWait::Waiter::await(Request& request, Deadline deadline,
                                       const std::function<bool()>& gives_up) {
  std::unique_lock lock(mutex_);
  while (!request.status) {
    const Duration left = deadline.left(steady_clock().now());
    if (left == Duration::zero() || gives_up()) {
      return fail(Errc::timeout,
                  fmt::format("what this process runs on GPU {} does not end: its own kernels, or "
                              "another communicator's (GDRX_TIMEOUT sets the limit)",
                              device_));
    }
    changed_.wait_for(lock, std::min<Duration>(left, kLookUp));
  }
  request.posted = false;
  const cudaError_t status = *request.status;
  lock.unlock();
  return check(status, "cudaDeviceSynchronize");
}

Result<DeviceWait> DeviceWait::create(int device) {
  auto request = std::make_shared<Request>();
  request->waiter = GDRX_TRY(Waiter::of(device));
  return DeviceWait(std::move(request));
}

DeviceWait& DeviceWait::operator=(DeviceWait&& other) noexcept {
  request_.swap(other.request_);
  return *this;
}

DeviceWait::~DeviceWait() {
  if (request_) request_->waiter->release();
}

Result<void> DeviceWait::wait(Deadline deadline, const std::function<bool()>& gives_up) {
  Waiter& waiter = *request_->waiter;
  if (left_behind()) {  // first for what there was then
    GDRX_TRY(waiter.await(*request_, deadline, gives_up));
  }
  waiter.post(request_);
  return waiter.await(*request_, deadline, gives_up);
}

bool DeviceWait::left_behind() const noexcept {
  return request_ && request_->waiter->is_posted(*request_);
}

void DeviceWait::leave(std::unique_ptr<Kept> kept) noexcept {
  request_->waiter->leave(*request_, std::move(kept));
}

}  // namespace gdrx::gpu
