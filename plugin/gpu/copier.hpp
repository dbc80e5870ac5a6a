// SPDX-License-Identifier: Apache-2.0
// Copies of one connection, in order, on a stream of its own: GPU or host memory to a peer's GPU
// memory. The copy engines do them while NCCL's kernel runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gdrx/result.hpp"
#include "plugin/gpu/driver.hpp"

namespace gdrx::gpu {

class Copier {
 public:
  /// `slots` copies may be under way. Within a CUDA context, which has to be current in every call.
  static Result<std::unique_ptr<Copier>> create(std::size_t slots);
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  Result<void> start(std::size_t slot, std::byte* to, std::span<const std::byte> from);
  Result<Progress> poll(std::size_t slot);

 private:
  Copier() = default;
  Stream stream_ = nullptr;
  std::vector<Event> events_;
};

}  // namespace gdrx::gpu
