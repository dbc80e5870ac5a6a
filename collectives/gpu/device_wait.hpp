// SPDX-License-Identifier: Apache-2.0
// A wait for a whole GPU that ends. CUDA has none: a thread waits for it, and may be left behind.
#pragma once

#include <functional>
#include <memory>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"

namespace gdrx::gpu {

/// Of one path. Its waits need no memory: the thread that waits is there from the start, one a GPU
/// for all paths of the process.
class DeviceWait {
 public:
  /// What must not go before the wait has ended. It may go in the thread that waits: it destroys no
  /// path.
  struct Kept {
    virtual ~Kept() = default;
  };
  static Result<DeviceWait> create(int device);
  DeviceWait() = default;  // of none: to be assigned to
  DeviceWait(DeviceWait&& other) noexcept = default;
  DeviceWait& operator=(DeviceWait&& other) noexcept;
  ~DeviceWait();

  /// For all that is in streams of this process. Errc::timeout: something there does not end, or
  /// `gives_up` said so. CUDA spoils whatever stream any thread captures on that GPU meanwhile, in
  /// whichever mode.
  Result<void> wait(Deadline deadline, const std::function<bool()>& gives_up);
  /// A wait has given up, and what it waited for still runs as far as is known.
  bool left_behind() const noexcept;
  /// To the thread that still waits: it goes when that has ended, or now if it has. Once.
  void leave(std::unique_ptr<Kept> kept) noexcept;

 private:
  struct Request;
  class Waiter;
  explicit DeviceWait(std::shared_ptr<Request> request) noexcept : request_(std::move(request)) {}
  std::shared_ptr<Request> request_;
};

}  // namespace gdrx::gpu
