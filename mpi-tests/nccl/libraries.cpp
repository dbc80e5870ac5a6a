// SPDX-License-Identifier: Apache-2.0
#include "mpi-tests/nccl/libraries.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gdrx::bench {
namespace {

template <class Function>
Result<void> find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return {};
  return fail(Errc::unsupported, fmt::format("the library has no {}", name));
}

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
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return fail(Errc::unsupported, "no NVIDIA driver is on this machine");
  GDRX_TRY(find(library, "cuInit", driver.init));
  GDRX_TRY(find(library, "cuDeviceGetCount", driver.count));
  GDRX_TRY(find(library, "cuDevicePrimaryCtxRetain", driver.retain));
  GDRX_TRY(find(library, "cuCtxSetCurrent", driver.set_current));
  GDRX_TRY(find(library, "cuStreamCreate", driver.stream_create));
  GDRX_TRY(find(library, "cuStreamSynchronize", driver.stream_synchronize));
  GDRX_TRY(find(library, "cuStreamQuery", driver.stream_query));
  GDRX_TRY(find(library, "cuMemAlloc_v2", driver.allocate));
  GDRX_TRY(find(library, "cuMemcpyDtoH_v2", driver.to_host));
  return find(library, "cuMemcpyHtoD_v2", driver.to_device);
}

DevicePointer address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

}  // namespace

Result<Nccl> Nccl::load(const std::string& path) {
  void* library = dlopen(path.empty() ? "libnccl.so.2" : path.c_str(), RTLD_NOW);
  if (library == nullptr) return fail(Errc::unsupported, dlerror());
  Nccl nccl;
  GDRX_TRY(find(library, "ncclGetVersion", nccl.version));
  GDRX_TRY(find(library, "ncclGetUniqueId", nccl.unique_id));
  GDRX_TRY(find(library, "ncclCommInitRank", nccl.init_rank));
  GDRX_TRY(find(library, "ncclCommDestroy", nccl.destroy));
  GDRX_TRY(find(library, "ncclCommGetAsyncError", nccl.async_error));
  GDRX_TRY(find(library, "ncclGetErrorString", nccl.error_text));
  GDRX_TRY(find(library, "ncclGroupStart", nccl.group_start));
  GDRX_TRY(find(library, "ncclGroupEnd", nccl.group_end));
  GDRX_TRY(find(library, "ncclAllReduce", nccl.all_reduce));
  GDRX_TRY(find(library, "ncclAllGather", nccl.all_gather));
  GDRX_TRY(find(library, "ncclReduceScatter", nccl.reduce_scatter));
  GDRX_TRY(find(library, "ncclBroadcast", nccl.broadcast));
  GDRX_TRY(find(library, "ncclReduce", nccl.reduce));
  GDRX_TRY(find(library, "ncclSend", nccl.send));
  GDRX_TRY(find(library, "ncclRecv", nccl.recv));
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
