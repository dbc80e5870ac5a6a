// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/fabric/test_gpu.hpp"
#include "transport/memory/cuda_memory.hpp"

namespace gdrx::sim {
namespace {

class Real final : public TestGpu {
 public:
  // Without the driver's own flush: it would not push what the simulated NIC holds back.
  Real() {
    calls_.flush_writes = [](const void*) -> Result<void> {
      return fail(Errc::unsupported, "the simulated NIC's writes are not the driver's");
    };
    // A copy that fails is a remote access error to the simulated NIC: nobody sees its reason.
    calls_.to_device = [](std::byte* device, const std::byte* host, std::size_t bytes) {
      return said(cuda::gpu_calls().to_device(device, host, bytes));
    };
    calls_.to_host = [](std::byte* host, const std::byte* device, std::size_t bytes) {
      return said(cuda::gpu_calls().to_host(host, device, bytes));
    };
  }
  const cuda::GpuCalls& calls() override { return calls_; }
  std::span<std::byte> allocate(std::size_t bytes) override {
    auto made = cuda::DeviceBuffer::create(bytes, 0);
    if (!made) throw std::runtime_error(describe(made.error()));
    buffers_.push_back(std::move(*made));
    const std::span<std::byte> memory(buffers_.back().data(), bytes);
    put(memory, std::vector<std::byte>(bytes));
    return memory;
  }
  void put(std::span<std::byte> device, std::span<const std::byte> data) override {
    auto copied = cuda::copy_to_device(device.data(), data.data(), data.size());
    if (!copied) throw std::runtime_error(describe(copied.error()));
  }
  std::vector<std::byte> get(std::span<const std::byte> device) override {
    std::vector<std::byte> bytes(device.size());
    auto copied = cuda::copy_to_host(bytes.data(), device.data(), device.size());
    if (!copied) throw std::runtime_error(describe(copied.error()));
    return bytes;
  }

 private:
  static Result<void> said(Result<void> result) {
    if (!result) ADD_FAILURE() << describe(result.error());
    return result;
  }
  cuda::GpuCalls calls_ = cuda::gpu_calls();
  std::vector<cuda::DeviceBuffer> buffers_;
};

}  // namespace

std::string no_test_gpu() {
  if (!cuda::missing().empty()) return cuda::missing();
  auto tried = cuda::DeviceBuffer::create(64, 0);
  return tried ? std::string() : describe(tried.error());
}
std::unique_ptr<TestGpu> make_test_gpu() { return std::make_unique<Real>(); }

}  // namespace gdrx::sim
