// SPDX-License-Identifier: Apache-2.0
// The part of CUDA's driver that sharing memory needs and the runtime lacks. Found through the
// runtime: nothing of ours links libcuda.
#pragma once

#include <cuda.h>

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

/// What the driver said, as a Result. `call` is for a person.
Result<void> check(const DriverApi& driver, CUresult status, const char* call);

}  // namespace gdrx::gpu
