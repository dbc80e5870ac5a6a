// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/preload.hpp"

#include <cuda_runtime_api.h>

#include <vector>

#include "collectives/gpu/driver.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/kernels/loadable.hpp"

namespace gdrx::gpu {
#if CUDA_VERSION >= 12040
namespace {

struct LoadApi {
  decltype(&cuFuncGetModule) module_of = nullptr;
  decltype(&cuModuleGetFunctionCount) count = nullptr;
  decltype(&cuModuleEnumerateFunctions) enumerate = nullptr;
  decltype(&cuFuncLoad) load = nullptr;
};

Result<LoadApi> find_api() {
  constexpr unsigned kVersion = 12040;
  LoadApi api;
  GDRX_TRY(find_in_driver("cuFuncGetModule", api.module_of, kVersion));
  GDRX_TRY(find_in_driver("cuModuleGetFunctionCount", api.count, kVersion));
  GDRX_TRY(find_in_driver("cuModuleEnumerateFunctions", api.enumerate, kVersion));
  GDRX_TRY(find_in_driver("cuFuncLoad", api.load, kVersion));
  return api;
}

Result<void> load_file_of(const void* kernel, const LoadApi& api, const DriverApi& driver) {
  cudaFunction_t function = nullptr;
  GDRX_TRY(check(cudaGetFuncBySymbol(&function, kernel), "cudaGetFuncBySymbol"));
  CUmodule module = nullptr;
  GDRX_TRY(check(driver, api.module_of(&module, function), "cuFuncGetModule"));
  unsigned count = 0;
  GDRX_TRY(check(driver, api.count(&count, module), "cuModuleGetFunctionCount"));
  std::vector<CUfunction> functions(count);
  GDRX_TRY(
      check(driver, api.enumerate(functions.data(), count, module), "cuModuleEnumerateFunctions"));
  for (CUfunction each : functions) GDRX_TRY(check(driver, api.load(each), "cuFuncLoad"));
  return {};
}

}  // namespace

Result<void> load_kernels() {
  static const Result<LoadApi> api = find_api();
  if (!api) return {};
  const DriverApi* driver = GDRX_TRY(driver_api());
  for (const Loadable* file = Loadable::first(); file != nullptr; file = file->next()) {
    GDRX_TRY(load_file_of(file->kernel(), *api, *driver));
  }
  return {};
}
#else
Result<void> load_kernels() { return {}; }
#endif

}  // namespace gdrx::gpu
