// SPDX-License-Identifier: Apache-2.0
#include "plugin/gpu/driver.hpp"

#include <fmt/format.h>

#include "base/system_library.hpp"

namespace gdrx::gpu {
namespace {

Driver look_up() {
  Driver d;
  SystemLibrary library = SystemLibrary::open({"libcuda.so.1"}, "", SystemLibrary::If::loaded);
  library.keep();
  if (!library.opened()) {
    d.missing = d.missing_to_reach = "this process has not loaded the CUDA driver";
    return d;
  }
  const bool reaches = library.take({
      {d.allocate, "cuMemAlloc_v2"},
      {d.free, "cuMemFree_v2"},
      {d.error_text, "cuGetErrorString"},
  });
  if (!reaches) d.missing_to_reach = library.error().what;
  const bool whole = library.take({
      {d.current, "cuCtxGetCurrent"},
      {d.device, "cuCtxGetDevice"},
      {d.context_create, "cuCtxCreate_v2"},
      {d.context_destroy, "cuCtxDestroy_v2"},
      {d.push, "cuCtxPushCurrent_v2"},
      {d.pop, "cuCtxPopCurrent_v2"},
      {d.host_allocate, "cuMemHostAlloc"},
      {d.host_free, "cuMemFreeHost"},
      {d.address_range, "cuMemGetAddressRange_v2"},
      {d.retain, "cuMemRetainAllocationHandle"},
      {d.release, "cuMemRelease"},
      {d.export_to, "cuMemExportToShareableHandle"},
      {d.import_from, "cuMemImportFromShareableHandle"},
      {d.reserve, "cuMemAddressReserve"},
      {d.unreserve, "cuMemAddressFree"},
      {d.map, "cuMemMap"},
      {d.unmap, "cuMemUnmap"},
      {d.set_access, "cuMemSetAccess"},
      {d.stream_create, "cuStreamCreate"},
      {d.stream_synchronize, "cuStreamSynchronize"},
      {d.stream_query, "cuStreamQuery"},
      {d.write_value, "cuStreamWriteValue32_v2"},
      {d.write_values, "cuStreamBatchMemOp_v2"},
      {d.stream_destroy, "cuStreamDestroy_v2"},
      {d.copy, "cuMemcpyAsync"},
  });
  if (!whole) d.missing = library.error().what;
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
