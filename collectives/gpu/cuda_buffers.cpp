// SPDX-License-Identifier: Apache-2.0
// Whether a path's GPU reaches a call's buffers.
#include <fmt/format.h>

#include "collectives/gpu/cuda_path.hpp"

namespace gdrx::gpu {

Result<void> CudaPath::check_buffers(const void* input, const void* output) const {
  const DriverApi* driver = GDRX_TRY(driver_api());
  if (input != nullptr) GDRX_TRY(check_buffer(*driver, input));
  return output == nullptr || input == output ? Result<void>() : check_buffer(*driver, output);
}

// A kernel that touches what it does not reach spoils the GPU for the whole process.
Result<void> CudaPath::check_buffer(const DriverApi& driver, const void* buffer) const {
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
  // Memory of cudaMalloc on another GPU it may reach as long as peer access happens to be on. The
  // driver's attribute of access says so even where it is off.
  if (has_access(driver, address, device_)) return {};
  return fail(Errc::invalid_argument,
              fmt::format("rank {}: a buffer is on GPU {}, the communicator on GPU {}: allocate it "
                          "there, or name the GPU in gdrxConfig_t.gpus",
                          call_.rank, device, device_));
}

}  // namespace gdrx::gpu
