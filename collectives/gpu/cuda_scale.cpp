// SPDX-License-Identifier: Apache-2.0
// What a path multiplies before it adds.
#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/kernels/scale.hpp"

namespace gdrx::gpu {
namespace {

constexpr int kBlocks = 128;  // more of them read a GPU's own memory no faster

}  // namespace

Result<std::byte*> CudaPath::products() {
  if (!has_products_) {
    const OnDevice here(device_);
    const AnyCapture beside;
    held_->products = GDRX_TRY(PooledMemory::borrow(kProductBytes));
    has_products_ = true;
  }
  return held_->products.data();
}

Result<void> CudaPath::scale(const Scaling& what, void* stream) {
  const OnDevice here(device_);
  auto* const to = static_cast<cudaStream_t>(stream);
  GDRX_TRY(follow(to));  // the call before may use the same memory
  return check(launch_scale(what, kBlocks, held_->guard(), to), "kernel launch");
}

}  // namespace gdrx::gpu
