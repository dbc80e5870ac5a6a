// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's calls that hand memory from process to process and copy it, found in the
// process that NCCL has brought the driver into. Types and values are ours, after the documented
// ABI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "gdrx/result.hpp"

namespace gdrx::gpu {

using Status = int;
using Pointer = unsigned long long;  // CUdeviceptr
using Allocation = unsigned long long;
using Context = void*;
using Stream = void*;

inline constexpr Status kNotReady = 600;
inline constexpr int kPosixDescriptor = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct AccessTo {         // CUmemAccessDesc
  int location_type = 1;  // device
  int location_id = 0;
  int flags = 3;  // read and write
};
static_assert(sizeof(AccessTo) == 12);

inline constexpr int kWriteValue32 = 2;
inline constexpr int kWriteValue64 = 5;
struct StreamWrite {  // CUstreamBatchMemOpParams::writeValue
  int operation = kWriteValue64;
  Pointer address = 0;
  std::uint64_t value = 0;
  unsigned flags = 0;  // after all that the stream did before
  Pointer alias = 0;
  std::uint64_t unused = 0;
};
static_assert(sizeof(StreamWrite) == 48);

struct Driver {
  Status (*current)(Context*) = nullptr;
  Status (*device)(int*) = nullptr;  // of the current context
  Status (*context_create)(Context*, unsigned, int) = nullptr;
  Status (*context_destroy)(Context) = nullptr;
  Status (*push)(Context) = nullptr;
  Status (*pop)(Context*) = nullptr;
  Status (*host_allocate)(void**, std::size_t, unsigned) = nullptr;
  Status (*host_free)(void*) = nullptr;
  Status (*allocate)(Pointer*, std::size_t) = nullptr;
  Status (*free)(Pointer) = nullptr;
  Status (*address_range)(Pointer*, std::size_t*, Pointer) = nullptr;
  Status (*retain)(Allocation*, void*) = nullptr;
  Status (*release)(Allocation) = nullptr;
  Status (*export_to)(void*, Allocation, int, unsigned long long) = nullptr;
  Status (*import_from)(Allocation*, void*, int) = nullptr;
  Status (*reserve)(Pointer*, std::size_t, std::size_t, Pointer, unsigned long long) = nullptr;
  Status (*unreserve)(Pointer, std::size_t) = nullptr;
  Status (*map)(Pointer, std::size_t, std::size_t, Allocation, unsigned long long) = nullptr;
  Status (*unmap)(Pointer, std::size_t) = nullptr;
  Status (*set_access)(Pointer, std::size_t, const AccessTo*, std::size_t) = nullptr;
  Status (*stream_create)(Stream*, unsigned) = nullptr;
  Status (*stream_synchronize)(Stream) = nullptr;
  Status (*stream_query)(Stream) = nullptr;
  Status (*stream_destroy)(Stream) = nullptr;
  Status (*copy)(Pointer, Pointer, std::size_t, Stream) = nullptr;
  Status (*write_value)(Stream, Pointer, std::uint32_t, unsigned) = nullptr;
  Status (*write_values)(Stream, unsigned, StreamWrite*, unsigned) = nullptr;
  Status (*error_text)(Status, const char**) = nullptr;
  std::string missing;           // empty: everything is there
  std::string missing_to_reach;  // empty: so is what it takes to try whether NICs reach GPU memory
};

/// Looked up once. Never loads the driver: who has no GPU memory has none to hand out.
const Driver& driver();

Result<void> check(Status status, const char* call);

}  // namespace gdrx::gpu
