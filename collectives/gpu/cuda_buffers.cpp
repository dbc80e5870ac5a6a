// SPDX-License-Identifier: Apache-2.0
// Whether a path's GPU reaches a call's buffers.
#include <fmt/format.h>

#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/on_device.hpp"

namespace gdrx::gpu {

Result<void> CudaPath::check_buffers(const void* input, const void* output) const {
  const DriverApi* driver = GDRX_TRY(driver_api());
  if (input != nullptr) GDRX_TRY(check_buffer(*driver, input));
  return output == nullptr || input == output ? Result<void>() : check_buffer(*driver, output);
}

// A kernel that touches what it does not reach spoils the GPU for the whole process.
Result<void> CudaPath::check_buffer(const DriverApi& driver, const void* buffer) const {
  constexpr unsigned kReadWrite = 3;
  const auto address = reinterpret_cast<CUdeviceptr>(buffer);
  int device = -1;
  const auto told = driver.pointer_attribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  if (told == CUDA_SUCCESS && device == device_) return {};
  unsigned managed = 0;
  if (driver.pointer_attribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address) ==
          CUDA_SUCCESS &&
      managed != 0) {
    return {};
  }
  const OnDevice here(device_);
  unsigned allowed = 0;  // mapped for this GPU, too
  if (driver.pointer_attribute(&allowed, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address) ==
          CUDA_SUCCESS &&
      allowed == kReadWrite) {
    return {};
  }
  return fail(Errc::invalid_argument,
              fmt::format("rank {}: a buffer is on GPU {}, the communicator on GPU {}: allocate it "
                          "there, or name the GPU in gdrxConfig_t.gpus",
                          call_.rank, device, device_));
}

}  // namespace gdrx::gpu
