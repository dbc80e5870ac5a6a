// SPDX-License-Identifier: Apache-2.0
// Devices, contexts, errors. GDRX_EMULATED_GPUS says how many devices there are (8),
// GDRX_EMULATED_PROCESSORS how many multiprocessors each has (3); with GDRX_EMULATED_LATE_CONTEXTS
// cudaSetDevice makes no context, as before CUDA 12.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "tests/emulated/cuda/state.hpp"

namespace gdrx::emulated {
namespace {

constexpr int kMostDevices = 64;

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && std::atoi(text) > 0 ? std::atoi(text) : otherwise;
}

/// Processes with the same one have the same GPUs: those that a program forked or started, and the
/// ranks of a job. Others, that run beside it, have their own.
std::uint64_t machine() {
  const std::hash<std::string> hash;
  if (const char* named = std::getenv("GDRX_TEST_EMULATED_MACHINE")) return hash(named);
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID", "OMPI_COMM_WORLD_SIZE"}) {
    if (const char* job = std::getenv(name)) return hash(job);
  }
  const std::string own = std::to_string(getpid());
  setenv("GDRX_TEST_EMULATED_MACHINE", own.c_str(), 0);
  return hash(own);
}
const std::uint64_t kMachine = machine();  // before anybody forks

std::array<CUctx_st, kMostDevices>& contexts() {
  static std::array<CUctx_st, kMostDevices> all = [] {
    std::array<CUctx_st, kMostDevices> made{};
    for (int i = 0; i < kMostDevices; ++i) made[static_cast<std::size_t>(i)].device = i;
    return made;
  }();
  return all;
}

thread_local std::vector<CUcontext> stack;
thread_local int chosen = 0;  // what cudaSetDevice said last, for who has no context
thread_local cudaError_t last_status = cudaSuccess;

bool exists(int device) { return device >= 0 && device < device_count(); }
CUcontext context_of(int device) { return &contexts()[static_cast<std::size_t>(device)]; }

}  // namespace

int device_count() noexcept {
  static const int count = std::min(setting("GDRX_EMULATED_GPUS", 8), kMostDevices);
  return count;
}

CUcontext current_context() noexcept {
  if (stack.empty()) stack.push_back(nullptr);
  if (stack.back() == nullptr) stack.back() = context_of(chosen);
  return stack.back();
}

cudaError_t told(cudaError_t status) noexcept {
  if (status != cudaSuccess) last_status = status;
  return status;
}

}  // namespace gdrx::emulated

using namespace gdrx::emulated;  // NOLINT(google-build-using-namespace): CUDA's names are global

cudaError_t cudaGetLastError() { return std::exchange(last_status, cudaSuccess); }

const char* cudaGetErrorName(cudaError_t status) {
  switch (static_cast<int>(status)) {  // of hundreds
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    default:
      return "an emulated CUDA error";
  }
}
const char* cudaGetErrorString(cudaError_t status) { return cudaGetErrorName(status); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!exists(device)) return told(cudaErrorInvalidDevice);
  chosen = device;
  if (stack.empty()) stack.push_back(nullptr);
  const bool late = stack.back() == nullptr && setting("GDRX_EMULATED_LATE_CONTEXTS", 0) != 0;
  if (!late) stack.back() = context_of(device);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = stack.empty() || stack.back() == nullptr ? chosen : stack.back()->device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int device) {
  if (!exists(device)) return told(cudaErrorInvalidDevice);
  *found = {};
  std::snprintf(found->name, sizeof found->name, "gdrx emulated GPU");
  std::memcpy(found->uuid.bytes, &kMachine, sizeof kMachine);
  std::memcpy(found->uuid.bytes + sizeof kMachine, &device, sizeof device);
  found->multiProcessorCount = setting("GDRX_EMULATED_PROCESSORS", 3);
  found->pciBusID = device + 1;
  found->major = 9;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int device, unsigned) {
  return told(exists(device) && device != current_device() ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDeviceDisablePeerAccess(int) { return cudaErrorPeerAccessNotEnabled; }

// The newest form first, as the driver answers for a version from 12 on.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* answer) {
  Dl_info self{};
  dladdr(reinterpret_cast<void*>(&device_count), &self);
  void* library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  *found = dlsym(library, (std::string(name) + "_v2").c_str());
  if (*found == nullptr) *found = dlsym(library, name);
  dlclose(library);
  if (answer != nullptr) {
    *answer = *found != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  }
  return cudaSuccess;
}

// Nothing is loaded here: the driver that this is has no functions for that.
cudaError_t cudaGetFuncBySymbol(cudaFunction_t*, const void*) {
  return told(cudaErrorNotSupported);
}

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuDeviceGetCount(int* count) {
  *count = device_count();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return exists(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char* name, int room, CUdevice device) {
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, device) != cudaSuccess) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(room), "%s", properties.name);
  return CUDA_SUCCESS;
}

// All that is asked for here says what NICs may do with the device's memory: everything.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice device) {
  *value = what == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING ? 200 : 1;  // all devices
  return exists(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  if (!exists(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = context_of(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = stack.empty() ? nullptr : stack.back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  if (stack.empty()) stack.push_back(nullptr);
  stack.back() = context;
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  stack.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  if (stack.empty() || stack.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = stack.back()->device;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult status, const char** text) {
  *text = cudaGetErrorName(static_cast<cudaError_t>(status));
  return CUDA_SUCCESS;
}
