// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/on_device.hpp"

#include <cuda_runtime_api.h>

#include "collectives/gpu/driver.hpp"

namespace gdrx::gpu {
namespace {

bool has_no_context() noexcept {
  const auto driver = driver_api();
  CUcontext context = nullptr;
  return driver && (*driver)->current_context(&context) == CUDA_SUCCESS && context == nullptr;
}

}  // namespace

OnDevice::OnDevice(int device) noexcept : had_none_(has_no_context()) {
  if (!had_none_ && (cudaGetDevice(&before_) != cudaSuccess || before_ == device)) {
    before_ = -1;
    return;
  }
  cudaSetDevice(device);
}

OnDevice::~OnDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
  CUcontext popped = nullptr;
  if (had_none_) (*driver_api())->pop_context(&popped);
}

}  // namespace gdrx::gpu
