// SPDX-License-Identifier: Apache-2.0
// A wait for a whole GPU that ends. CUDA has none: a thread waits for it, and may be left behind.
#pragma once

#include <memory>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"

namespace gdrx::gpu {

class DeviceWait {
 public:
  /// What must not go before the wait has ended.
  struct Kept {
    virtual ~Kept() = default;
  };
  /// For all that is in streams of this process. Errc::timeout: something there does not end. CUDA
  /// spoils whatever stream any thread captures on that GPU meanwhile, in whichever mode.
  Result<void> wait(int device, Deadline deadline);
  /// A wait has given up, and what it waited for still runs as far as is known.
  bool left_behind() const noexcept { return state_ != nullptr; }
  /// To the thread that still waits: it goes when that has ended, or now if it has. Once.
  void leave(std::unique_ptr<Kept> kept) noexcept;

 private:
  struct State;
  Result<void> await(int device, Deadline deadline);
  std::shared_ptr<State> state_;  // of the thread that still waits
};

}  // namespace gdrx::gpu
