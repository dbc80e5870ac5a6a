// SPDX-License-Identifier: Apache-2.0
// GPU memory for tests: a real GPU's or the fake one's, whichever the program is linked with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/memory/gpu_calls.hpp"

namespace gdrx::sim {

class TestGpu {
 public:
  virtual ~TestGpu() = default;
  virtual const cuda::GpuCalls& calls() = 0;
  /// Zero at first; lives as long as this.
  virtual std::span<std::byte> allocate(std::size_t bytes) = 0;
  virtual void put(std::span<std::byte> device, std::span<const std::byte> data) = 0;
  virtual std::vector<std::byte> get(std::span<const std::byte> device) = 0;
};

/// Why there is none, or empty.
std::string no_test_gpu();
std::unique_ptr<TestGpu> make_test_gpu();

}  // namespace gdrx::sim
