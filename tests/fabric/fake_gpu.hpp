// SPDX-License-Identifier: Apache-2.0
// A GPU without one: memory that processors must not touch (whoever does ends by a fault), which
// calls alone reach, and which is exported as a descriptor. So that what is chosen for GPU memory,
// and that nothing but NICs and copies touches it, is tested on any machine.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "transport/memory/gpu_calls.hpp"
#include "transport/memory/pages.hpp"

namespace gdrx::sim {

class FakeGpu {
 public:
  explicit FakeGpu(std::size_t bytes) : bytes_(bytes), fd_(memfd_create("gpu", MFD_CLOEXEC)) {
    if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail_now();
    device_ = map(PROT_NONE);
    behind_ = map(PROT_READ | PROT_WRITE);
    facts.name = "Fake";
    facts.rdma = facts.dma_buf = true;
    calls_.kind_of = [this](const void* at) {
      return inside(at) ? MemoryKind::cuda : MemoryKind::host;
    };
    calls_.facts_of = [this](const void* at) -> Result<cuda::GpuFacts> {
      if (!inside(at)) return fail(Errc::invalid_argument, "no memory of a GPU");
      return facts;
    };
    calls_.export_dma_buf = [this](std::span<std::byte> memory) -> Result<cuda::DmaBuf> {
      ++exports;
      return cuda::DmaBuf(dup(fd_), static_cast<Bytes>(memory.data() - device_));
    };
    calls_.keep_in_order = [](const void*) -> Result<void> { return {}; };
    calls_.allocate_host = [](std::size_t n, const void*) -> Result<cuda::HostMemory> {
      auto pages = std::make_shared<Pages>(GDRX_TRY(Pages::create(n)));
      return cuda::HostMemory{pages->bytes(), pages};
    };
    calls_.to_host = [this](std::byte* host, const std::byte* device, std::size_t n) {
      std::memcpy(host, behind(device), n);
      return Result<void>();
    };
    calls_.to_device = [this](std::byte* device, const std::byte* host, std::size_t n) {
      std::memcpy(behind(device), host, n);
      return Result<void>();
    };
    calls_.flush_writes = [](const void*) -> Result<void> {
      return fail(Errc::unsupported, "this GPU cannot");
    };
  }
  ~FakeGpu() {
    munmap(device_, bytes_);
    munmap(behind_, bytes_);
    close(fd_);
  }
  FakeGpu(const FakeGpu&) = delete;
  FakeGpu& operator=(const FakeGpu&) = delete;

  const cuda::GpuCalls& calls() const noexcept { return calls_; }
  cuda::GpuCalls& calls() noexcept { return calls_; }
  /// Addresses on the GPU, each part once, of any alignment.
  std::span<std::byte> allocate(std::size_t bytes) {
    if (bytes > bytes_ - used_) fail_now();
    const std::span<std::byte> part(device_ + used_, bytes);
    used_ += bytes;
    return part;
  }
  /// The same bytes as a kernel would see them.
  std::span<std::byte> seen(std::span<const std::byte> device) const {
    return {behind(device.data()), device.size()};
  }

  cuda::GpuFacts facts;
  int exports = 0;

 private:
  [[noreturn]] static void fail_now() { throw std::runtime_error("the fake GPU's memory"); }
  std::byte* map(int protection) const {
    void* memory = mmap(nullptr, bytes_, protection, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) fail_now();
    return static_cast<std::byte*>(memory);
  }
  bool inside(const void* at) const {
    return static_cast<const std::byte*>(at) >= device_ &&
           static_cast<const std::byte*>(at) < device_ + bytes_;
  }
  std::byte* behind(const std::byte* device) const {
    if (!inside(device)) fail_now();
    return behind_ + (device - device_);
  }

  std::size_t bytes_;
  int fd_;
  std::byte* device_ = nullptr;
  std::byte* behind_ = nullptr;
  std::size_t used_ = 0;
  cuda::GpuCalls calls_;
};

}  // namespace gdrx::sim
