// SPDX-License-Identifier: Apache-2.0
// The few calls of CUDA's driver that NCCL's API needs beside gdrx. Found when first needed, so
// that a program starts without CUDA.
#pragma once

#include <cstddef>

namespace gdrx::nccl::driver {

/// The calling thread's device, as the program's CUDA runtime has it, or CUDA's driver; 0: neither
/// knows one; -1: there is no GPU.
int current_device() noexcept;
int device_count() noexcept;
/// False: CUDA refused. The thread is given that device's context if it has none.
bool allocate(void** memory, std::size_t bytes) noexcept;
bool release(void* memory) noexcept;
/// Whether kernels can read it: GPU memory, or host memory that CUDA has pinned.
bool knows(const void* memory) noexcept;

}  // namespace gdrx::nccl::driver
