// SPDX-License-Identifier: Apache-2.0
// The few calls of CUDA's driver that NCCL's API needs beside gdrx. Found when first needed, so
// that a program starts without CUDA.
#pragma once

#include <cstddef>

namespace gdrx::nccl::driver {

/// The calling thread's device, 0 if it has none yet, as CUDA's runtime has it; -1: there is no
/// GPU.
int current_device() noexcept;
int device_count() noexcept;
/// False: CUDA refused. The thread is given the first device's context if it has none.
bool allocate(void** memory, std::size_t bytes) noexcept;
bool release(void* memory) noexcept;
/// From GPU memory, behind what is in CUDA's default stream.
bool read(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace gdrx::nccl::driver
