// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/nccl/libraries.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/system_library.hpp"

namespace gdrx::bench {
namespace {

using DevicePointer = unsigned long long;
constexpr int kNotReady = 600;  // CUDA_ERROR_NOT_READY

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*stream_create)(Stream*, unsigned) = nullptr;
  int (*stream_synchronize)(Stream) = nullptr;
  int (*stream_query)(Stream) = nullptr;
  int (*allocate)(DevicePointer*, std::size_t) = nullptr;
  int (*to_host)(void*, DevicePointer, std::size_t) = nullptr;
  int (*to_device)(DevicePointer, const void*, std::size_t) = nullptr;
};
Driver driver;

Result<void> cuda(int status, const char* call) {
  if (status == 0) return {};
  return fail(Errc::system, fmt::format("{} failed", call), status);
}

Result<void> load_driver() {
  SystemLibrary library =
      SystemLibrary::open({"libcuda.so.1"}, "no NVIDIA driver is on this machine");
  library.keep();
  const bool whole = library.take({
      {driver.init, "cuInit"},
      {driver.count, "cuDeviceGetCount"},
      {driver.retain, "cuDevicePrimaryCtxRetain"},
      {driver.set_current, "cuCtxSetCurrent"},
      {driver.stream_create, "cuStreamCreate"},
      {driver.stream_synchronize, "cuStreamSynchronize"},
      {driver.stream_query, "cuStreamQuery"},
      {driver.allocate, "cuMemAlloc_v2"},
      {driver.to_host, "cuMemcpyDtoH_v2"},
      {driver.to_device, "cuMemcpyHtoD_v2"},
  });
  if (!whole) return tl::unexpected(library.error());
  return {};
}

DevicePointer address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

Result<Nccl> Nccl::load(const std::string& path) {
  SystemLibrary library = SystemLibrary::open({path.empty() ? "libnccl.so.2" : path.c_str()});
  library.keep();
  // The loader's words: what a user names may be there and lack what it needs itself.
  if (!library.opened()) return fail(Errc::unsupported, dlerror());
  Nccl nccl;
  const bool whole = library.take({
      {nccl.version, "ncclGetVersion"},
      {nccl.unique_id, "ncclGetUniqueId"},
      {nccl.init_rank, "ncclCommInitRank"},
      {nccl.destroy, "ncclCommDestroy"},
      {nccl.async_error, "ncclCommGetAsyncError"},
      {nccl.error_text, "ncclGetErrorString"},
      {nccl.group_start, "ncclGroupStart"},
      {nccl.group_end, "ncclGroupEnd"},
      {nccl.all_reduce, "ncclAllReduce"},
      {nccl.all_gather, "ncclAllGather"},
      {nccl.reduce_scatter, "ncclReduceScatter"},
      {nccl.broadcast, "ncclBroadcast"},
      {nccl.reduce, "ncclReduce"},
      {nccl.send, "ncclSend"},
      {nccl.recv, "ncclRecv"},
  });
  if (!whole) return tl::unexpected(library.error());
  return nccl;
}

Result<void> Nccl::check(int status, const char* call) const {
  if (status == 0) return {};
  return fail(Errc::system, fmt::format("{}: {}", call, error_text(status)), status);
}

Result<Gpu> Gpu::open(int ordinal) {
  static const Result<void> loaded = load_driver();  // once, whichever thread comes first
  if (!loaded) return tl::unexpected(loaded.error());
  GDRX_TRY(cuda(driver.init(0), "cuInit"));
  int count = 0;
  GDRX_TRY(cuda(driver.count(&count), "cuDeviceGetCount"));
  if (count == 0) return fail(Errc::unsupported, "no GPU is visible");
  Gpu gpu;
  gpu.ordinal_ = ordinal % count;
  void* context = nullptr;
  GDRX_TRY(cuda(driver.retain(&context, gpu.ordinal_), "cuDevicePrimaryCtxRetain"));
  GDRX_TRY(cuda(driver.set_current(context), "cuCtxSetCurrent"));
  GDRX_TRY(cuda(driver.stream_create(&gpu.stream_, 1), "cuStreamCreate"));  // 1: non-blocking
  return gpu;
}

Result<std::byte*> Gpu::allocate(std::size_t bytes) {
  DevicePointer memory = 0;
  GDRX_TRY(cuda(driver.allocate(&memory, bytes), "cuMemAlloc"));
  return reinterpret_cast<std::byte*>(memory);
}

Result<void> Gpu::write(std::byte* device, const void* host, std::size_t bytes) {
  GDRX_TRY(cuda(driver.to_device(address(device), host, bytes), "cuMemcpyHtoD"));
  // From pageable memory the copy may still be under way, and the stream would not wait for it.
  return cuda(driver.stream_synchronize(nullptr), "cuStreamSynchronize");
}

Result<void> Gpu::read(void* host, const std::byte* device, std::size_t bytes) {
  return cuda(driver.to_host(host, address(device), bytes), "cuMemcpyDtoH");
}

Result<bool> Gpu::idle() {
  const int status = driver.stream_query(stream_);
  if (status == kNotReady) return false;
  GDRX_TRY(cuda(status, "cuStreamQuery"));
  return true;
}

}  // namespace gdrx::bench
