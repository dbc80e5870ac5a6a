// SPDX-License-Identifier: Apache-2.0
// What a path multiplies before it adds.
#include <algorithm>
#include <bit>
#include <vector>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/kernels/scale.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kBlocks = 128;             // what a GPU's memory gives, a GPU's links do not take
constexpr std::uint64_t kLeast = 65536;  // what small calls share

/// What was outgrown stays for the graphs that name it: memory grows twofold.
Result<std::byte*> memory_for(std::uint64_t bytes, std::vector<PooledMemory>& all) {
  if (all.empty() || all.back().bytes().size() < bytes) {
    const AnyCapture beside;
    all.reserve(all.size() + 1);
    all.push_back(GDRX_TRY(PooledMemory::borrow(std::bit_ceil(std::max(bytes, kLeast)))));
  }
  return all.back().data();
}

}  // namespace

Result<const std::byte*> CudaPath::scale(Scaling what, void* stream) {
  const OnDevice here(device_);
  auto* const to = static_cast<cudaStream_t>(stream);
  if (what.factor != nullptr) GDRX_TRY(check_buffers(what.factor, nullptr));
  if (what.to == nullptr) {
    GDRX_TRY(follow(to));  // the call before may read what lies there
    what.to = GDRX_TRY(memory_for(what.count * size_of(what.type), held_->scaled));
  }
  GDRX_TRY(check(launch_scale(what, kBlocks, held_->guard(), to), "kernel launch"));
  return static_cast<const std::byte*>(what.to);
}

}  // namespace gdrx::gpu
