// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gdrx::gpu {

/// Makes a device current for a scope. A thread that had no context has none afterwards either: to
/// make the device current that cudaGetDevice() names for it would make a context there.
class OnDevice {
 public:
  explicit OnDevice(int device) noexcept;
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;  // to go back to
  bool had_none_ = false;
};

}  // namespace gdrx::gpu
