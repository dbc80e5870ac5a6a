// SPDX-License-Identifier: Apache-2.0
#include "plugin/gpu/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gdrx::gpu {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) missing = fmt::format("libcuda.so.1 has no {}", name);
}

Driver look_up() {
  Driver d;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) {
    d.missing = d.missing_to_reach = "this process has not loaded the CUDA driver";
    return d;
  }
  find(library, "cuCtxGetCurrent", d.current, d.missing);
  find(library, "cuCtxGetDevice", d.device, d.missing);
  find(library, "cuCtxCreate_v2", d.context_create, d.missing);
  find(library, "cuCtxDestroy_v2", d.context_destroy, d.missing);
  find(library, "cuCtxPushCurrent_v2", d.push, d.missing);
  find(library, "cuCtxPopCurrent_v2", d.pop, d.missing);
  find(library, "cuMemHostAlloc", d.host_allocate, d.missing);
  find(library, "cuMemFreeHost", d.host_free, d.missing);
  find(library, "cuMemAlloc_v2", d.allocate, d.missing_to_reach);
  find(library, "cuMemFree_v2", d.free, d.missing_to_reach);
  find(library, "cuMemGetAddressRange_v2", d.address_range, d.missing);
  find(library, "cuMemRetainAllocationHandle", d.retain, d.missing);
  find(library, "cuMemRelease", d.release, d.missing);
  find(library, "cuMemExportToShareableHandle", d.export_to, d.missing);
  find(library, "cuMemImportFromShareableHandle", d.import_from, d.missing);
  find(library, "cuMemAddressReserve", d.reserve, d.missing);
  find(library, "cuMemAddressFree", d.unreserve, d.missing);
  find(library, "cuMemMap", d.map, d.missing);
  find(library, "cuMemUnmap", d.unmap, d.missing);
  find(library, "cuMemSetAccess", d.set_access, d.missing);
  find(library, "cuStreamCreate", d.stream_create, d.missing);
  find(library, "cuStreamSynchronize", d.stream_synchronize, d.missing);
  find(library, "cuStreamQuery", d.stream_query, d.missing);
  find(library, "cuStreamWriteValue32_v2", d.write_value, d.missing);
  find(library, "cuStreamBatchMemOp_v2", d.write_values, d.missing);
  find(library, "cuStreamDestroy_v2", d.stream_destroy, d.missing);
  find(library, "cuMemcpyAsync", d.copy, d.missing);
  find(library, "cuGetErrorString", d.error_text, d.missing_to_reach);
  if (d.missing.empty()) d.missing = d.missing_to_reach;
  return d;
}

}  // namespace

const Driver& driver() {
  static const Driver found = look_up();
  return found;
}

Result<void> check(Status status, const char* call) {
  if (status == 0) return {};
  const char* text = nullptr;
  if (driver().error_text(status, &text) != 0 || text == nullptr) text = "unknown error";
  return fail(Errc::system, fmt::format("{}: {} ({})", call, text, status));
}

}  // namespace gdrx::gpu
