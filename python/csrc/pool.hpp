// SPDX-License-Identifier: Apache-2.0
// An allocator for PyTorch's memory pools whose allocations are numbered: ranks that allocate alike
// can tell which of their segments belong together, whatever addresses they got.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace gdrx_torch {

/// The number of the allocation that begins at `address`, from 0; -1: it is none of ours.
std::int64_t allocated_as(std::uintptr_t address);

}  // namespace gdrx_torch

extern "C" {
/// As torch.cuda.memory.CUDAPluggableAllocator calls them, with the device's context current. NULL:
/// there is no such memory, and PyTorch says so.
__attribute__((visibility("default"))) void* gdrx_pool_alloc(ssize_t bytes, int device,
                                                             void* stream);
__attribute__((visibility("default"))) void gdrx_pool_free(void* memory, ssize_t bytes, int device,
                                                           void* stream);
}
