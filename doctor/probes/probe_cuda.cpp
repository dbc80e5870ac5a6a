// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/system_library.hpp"
#include "doctor/probes/probes.hpp"

namespace gdrx::doctor {
namespace {

// Numbers of the driver API's attributes and handle types: part of its ABI.
constexpr int kVmmGdr = 110;
constexpr int kGdr = 116;
constexpr int kFlushOptions = 117;
constexpr int kWritesOrdering = 118;
constexpr int kDmabuf = 124;
constexpr int kDmabufHandle = 1;
constexpr std::size_t kProofBytes = std::size_t{2} << 20;

struct Cuda {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*bus)(char*, int, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*allocate)(unsigned long long*, std::size_t) = nullptr;
  int (*free)(unsigned long long) = nullptr;
  int (*range_handle)(void*, unsigned long long, std::size_t, int, unsigned long long) = nullptr;
};

bool take(SystemLibrary& library, Cuda& cuda) {
  return library.take({
      // Absent before CUDA 11.7; then no GPU says that it has dma-buf either.
      {cuda.range_handle, "cuMemGetHandleForAddressRange", Symbol::Need::newer},
      {cuda.init, "cuInit"},
      {cuda.version, "cuDriverGetVersion"},
      {cuda.count, "cuDeviceGetCount"},
      {cuda.get, "cuDeviceGet"},
      {cuda.attribute, "cuDeviceGetAttribute"},
      {cuda.bus, "cuDeviceGetPCIBusId"},
      {cuda.retain, "cuDevicePrimaryCtxRetain"},
      {cuda.release, "cuDevicePrimaryCtxRelease_v2"},
      {cuda.push, "cuCtxPushCurrent_v2"},
      {cuda.pop, "cuCtxPopCurrent_v2"},
      {cuda.allocate, "cuMemAlloc_v2"},
      {cuda.free, "cuMemFree_v2"},
  });
}

// Exports real memory: the attribute alone has been wrong with old kernels.
std::string export_proof(const Cuda& cuda, int device) {
  if (cuda.range_handle == nullptr) return "the driver lacks cuMemGetHandleForAddressRange";
  void* context = nullptr;
  if (const int status = cuda.retain(&context, device); status != 0) {
    return fmt::format("cuDevicePrimaryCtxRetain: CUDA error {}", status);
  }
  std::string problem;
  unsigned long long memory = 0;
  cuda.push(context);
  if (const int status = cuda.allocate(&memory, kProofBytes); status != 0) {
    problem = fmt::format("cuMemAlloc of 2 MiB: CUDA error {}", status);
  } else {
    int fd = -1;
    const int exported = cuda.range_handle(&fd, memory, kProofBytes, kDmabufHandle, 0);
    if (exported != 0) problem = fmt::format("cuMemGetHandleForAddressRange: error {}", exported);
    if (exported == 0 && fd >= 0) close(fd);
    cuda.free(memory);
  }
  cuda.pop(&context);
  cuda.release(device);
  return problem;
}

}  // namespace

Result<CudaFacts> probe_cuda() {
  SystemLibrary library = SystemLibrary::open({"libcuda.so.1"});
  Cuda cuda;
  if (!take(library, cuda)) return tl::unexpected(library.error());
  CudaFacts facts;
  int count = 0;
  if (const int status = cuda.init(0); status != 0) {
    return fail(Errc::system, fmt::format("cuInit: CUDA error {}", status));
  }
  if (cuda.version(&facts.driver) != 0 || cuda.count(&count) != 0) {
    return fail(Errc::system, "cuDeviceGetCount failed");
  }
  for (int i = 0; i < count; ++i) {
    int device = 0;
    std::array<char, 32> bus{};
    if (cuda.get(&device, i) != 0 || cuda.bus(bus.data(), bus.size(), device) != 0) continue;
    const auto attribute = [&](int number) {
      int value = 0;
      return cuda.attribute(&value, number, device) == 0 ? value : 0;
    };
    CudaDevice found{bus.data(),
                     attribute(kGdr) != 0,
                     attribute(kDmabuf) != 0,
                     attribute(kVmmGdr) != 0,
                     attribute(kFlushOptions),
                     attribute(kWritesOrdering),
                     {}};
    if (found.dmabuf) found.dmabuf_export = export_proof(cuda, device);
    facts.devices.push_back(std::move(found));
  }
  return facts;
}

}  // namespace gdrx::doctor
