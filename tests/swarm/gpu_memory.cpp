// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tests/swarm/inject.hpp"
#include "tests/swarm/memory.hpp"

namespace gdrx::swarm {

struct Buffers::Gpu {
  int device = 0;
  float* in = nullptr;
  float* out = nullptr;
  cudaStream_t stream = nullptr;
};

Buffers::Buffers(int rank) : gpu_(std::make_unique<Gpu>()) {
  int devices = 1;
  cudaGetDeviceCount(&devices);
  gpu_->device = rank % devices;
  cudaSetDevice(gpu_->device);
  cudaMalloc(reinterpret_cast<void**>(&gpu_->in), kMostFloats * sizeof(float));
  cudaMalloc(reinterpret_cast<void**>(&gpu_->out), kMostFloats * sizeof(float));
  cudaStreamCreateWithFlags(&gpu_->stream, cudaStreamNonBlocking);
}
Buffers::~Buffers() {
  cudaStreamDestroy(gpu_->stream);
  cudaFree(gpu_->in);
  cudaFree(gpu_->out);
}
void Buffers::enter() const {
  cudaSetDevice(gpu_->device);
  cudaFree(nullptr);
}
void* Buffers::in() const { return gpu_->in; }
void* Buffers::out() const { return gpu_->out; }
gdrxStream_t Buffers::stream() const { return reinterpret_cast<gdrxStream_t>(gpu_->stream); }
void Buffers::upload(std::size_t count) {
  const Exempt quiet;
  cudaMemcpy(gpu_->in, host_in_.data(), count * sizeof(float), cudaMemcpyHostToDevice);
}
void Buffers::clear_out(std::size_t count) {
  const Exempt quiet;
  cudaMemset(gpu_->out, 0xff, count * sizeof(float));
}
bool Buffers::finish(gdrxComm_t comm) {
  const Exempt quiet;
  const bool ended = cudaStreamSynchronize(gpu_->stream) == cudaSuccess;
  gdrxResult_t later = gdrxSuccess;
  gdrxCommGetAsyncError(comm, &later);
  return ended && later == gdrxSuccess;
}
bool Buffers::equal(std::size_t count) {
  const Exempt quiet;
  cudaMemcpy(host_out_.data(), gpu_->out, count * sizeof(float), cudaMemcpyDeviceToHost);
  return std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(count),
                    host_out_.begin());
}

}  // namespace gdrx::swarm

namespace {

bool refused(const void* caller) {
  return gdrx::swarm::injected(gdrx::swarm::Kind::cuda, caller, {ENOMEM}).has_value();
}
#define SWARM_CALLER __builtin_return_address(0)

}  // namespace

SWARM_API cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  static auto* const real = gdrx::swarm::next<cudaError_t(void**, std::size_t)>("cudaMalloc");
  return refused(SWARM_CALLER) ? cudaErrorMemoryAllocation : real(memory, bytes);
}
SWARM_API cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  static auto* const real = gdrx::swarm::next<cudaError_t(void**, std::size_t)>("cudaMallocHost");
  return refused(SWARM_CALLER) ? cudaErrorMemoryAllocation : real(memory, bytes);
}
SWARM_API cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  static auto* const real =
      gdrx::swarm::next<cudaError_t(void**, std::size_t, unsigned)>("cudaHostAlloc");
  return refused(SWARM_CALLER) ? cudaErrorMemoryAllocation : real(memory, bytes, flags);
}
SWARM_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned flags) {
  static auto* const real =
      gdrx::swarm::next<cudaError_t(cudaStream_t*, unsigned)>("cudaStreamCreateWithFlags");
  return refused(SWARM_CALLER) ? cudaErrorMemoryAllocation : real(made, flags);
}
SWARM_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned flags) {
  static auto* const real =
      gdrx::swarm::next<cudaError_t(cudaEvent_t*, unsigned)>("cudaEventCreateWithFlags");
  return refused(SWARM_CALLER) ? cudaErrorMemoryAllocation : real(made, flags);
}
SWARM_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory) {
  static auto* const real =
      gdrx::swarm::next<cudaError_t(cudaIpcMemHandle_t*, void*)>("cudaIpcGetMemHandle");
  return refused(SWARM_CALLER) ? cudaErrorMemoryAllocation : real(handle, memory);
}
