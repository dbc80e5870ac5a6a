// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/fake_gpu.hpp"
#include "tests/fabric/test_gpu.hpp"

namespace gdrx::sim {
namespace {

constexpr std::size_t kMemory = 32 << 20;

class Fake final : public TestGpu {
 public:
  const cuda::GpuCalls& calls() override { return gpu_.calls(); }
  std::span<std::byte> allocate(std::size_t bytes) override { return gpu_.allocate(bytes); }
  void put(std::span<std::byte> device, std::span<const std::byte> data) override {
    std::copy(data.begin(), data.end(), gpu_.seen(device).begin());
  }
  std::vector<std::byte> get(std::span<const std::byte> device) override {
    const auto bytes = gpu_.seen(device);
    return {bytes.begin(), bytes.end()};
  }

 private:
  FakeGpu gpu_{kMemory};
};

}  // namespace

std::string no_test_gpu() { return {}; }
std::unique_ptr<TestGpu> make_test_gpu() { return std::make_unique<Fake>(); }

}  // namespace gdrx::sim
