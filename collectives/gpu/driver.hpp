// SPDX-License-Identifier: Apache-2.0
// The part of CUDA's driver that sharing memory needs and the runtime lacks. Found through the
// runtime: nothing of ours links libcuda.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "gdrx/result.hpp"

namespace gdrx::gpu {

struct DriverApi {
  decltype(&cuPointerGetAttribute) pointer_attribute = nullptr;
  decltype(&cuMemGetAddressRange) address_range = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRetainAllocationHandle) retain = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemGetAllocationPropertiesFromHandle) properties = nullptr;
  decltype(&cuMemExportToShareableHandle) export_handle = nullptr;
  decltype(&cuMemImportFromShareableHandle) import_handle = nullptr;
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_addresses = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemGetAccess) get_access = nullptr;
  decltype(&cuCtxGetCurrent) current_context = nullptr;
  decltype(&cuCtxPushCurrent) push_context = nullptr;
  decltype(&cuCtxPopCurrent) pop_context = nullptr;
  decltype(&cuGetErrorString) error_text = nullptr;
};

/// Looked up once. Errc::unsupported: the driver is older than CUDA 11.
Result<const DriverApi*> driver_api();

/// `version`: of CUDA, since which the function has had this type: major x 1000 + minor x 10.
/// Errc::unsupported: the driver lacks it.
Result<void*> function_of_driver(const char* name, unsigned version);
template <class Function>
Result<void> find_in_driver(const char* name, Function& function, unsigned version) {
  function = reinterpret_cast<Function>(GDRX_TRY(function_of_driver(name, version)));
  return {};
}

/// Lets `device` read and write what is mapped at [at, at + bytes). Given twice is given once.
/// Any thread: of two that give the same range to a GPU at once the driver refuses one
/// (CUDA_ERROR_ALREADY_MAPPED), so that they take turns here.
Result<void> give_access(const DriverApi& driver, CUdeviceptr at, std::uint64_t bytes, int device);

/// Whether `device` may read and write at `at`, by give_access() or a program's cuMemSetAccess.
/// False for memory that was not mapped by handles.
bool has_access(const DriverApi& driver, CUdeviceptr at, int device) noexcept;

/// What the driver said, as a Result. `call` is for a person.
Result<void> check(const DriverApi& driver, CUresult status, const char* call);

}  // namespace gdrx::gpu
