// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/driver.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <mutex>

#include "collectives/gpu/error.hpp"

namespace gdrx::gpu {
namespace {

constexpr unsigned kVersion = 12000;  // of the functions' types, as cuda.h declares them

template <class Function>
Result<void> find(const char* name, Function& function) {
  return find_in_driver(name, function, kVersion);
}

Result<DriverApi> load() {
  DriverApi api;
  GDRX_TRY(find("cuPointerGetAttribute", api.pointer_attribute));
  GDRX_TRY(find("cuMemGetAddressRange", api.address_range));
  GDRX_TRY(find("cuMemGetAllocationGranularity", api.granularity));
  GDRX_TRY(find("cuMemCreate", api.create));
  GDRX_TRY(find("cuMemRetainAllocationHandle", api.retain));
  GDRX_TRY(find("cuMemRelease", api.release));
  GDRX_TRY(find("cuMemGetAllocationPropertiesFromHandle", api.properties));
  GDRX_TRY(find("cuMemExportToShareableHandle", api.export_handle));
  GDRX_TRY(find("cuMemImportFromShareableHandle", api.import_handle));
  GDRX_TRY(find("cuMemAddressReserve", api.reserve));
  GDRX_TRY(find("cuMemAddressFree", api.free_addresses));
  GDRX_TRY(find("cuMemMap", api.map));
  GDRX_TRY(find("cuMemUnmap", api.unmap));
  GDRX_TRY(find("cuMemSetAccess", api.set_access));
  GDRX_TRY(find("cuMemGetAccess", api.get_access));
  GDRX_TRY(find("cuCtxGetCurrent", api.current_context));
  GDRX_TRY(find("cuCtxPushCurrent", api.push_context));
  GDRX_TRY(find("cuCtxPopCurrent", api.pop_context));
  GDRX_TRY(find("cuGetErrorString", api.error_text));
  return api;
}

}  // namespace

Result<void*> function_of_driver(const char* name, [[maybe_unused]] unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult answer{};
#if CUDART_VERSION >= 12050
  GDRX_TRY(check(
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &answer), name));
#else
  GDRX_TRY(check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &answer), name));
#endif
  if (found == nullptr || answer != cudaDriverEntryPointSuccess) {
    return fail(Errc::unsupported, fmt::format("the CUDA driver has no {}", name));
  }
  return found;
}

Result<const DriverApi*> driver_api() {
  static const Result<DriverApi> loaded = load();
  if (!loaded) return tl::unexpected(loaded.error());
  return &*loaded;
}

Result<void> give_access(const DriverApi& driver, CUdeviceptr at, std::uint64_t bytes, int device) {
  static std::mutex turn;
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const std::lock_guard lock(turn);
  return check(driver, driver.set_access(at, bytes, &access, 1), "cuMemSetAccess");
}

bool has_access(const DriverApi& driver, CUdeviceptr at, int device) noexcept {
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, device};
  unsigned long long allowed = 0;
  return driver.get_access(&allowed, &here, at) == CUDA_SUCCESS &&
         allowed == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

Result<void> check(const DriverApi& driver, CUresult status, const char* call) {
  if (status == CUDA_SUCCESS) return {};
  const char* text = nullptr;
  if (driver.error_text(status, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown error";
  const auto code =
      status == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED ? Errc::unsupported : Errc::system;
  return fail(code, fmt::format("{}: {} ({})", call, text, static_cast<int>(status)));
}

}  // namespace gdrx::gpu
