// SPDX-License-Identifier: Apache-2.0
// What a path does of a call between hosts: memory that NICs write, and kernels that wait for them.
#include "collectives/gpu/choose.hpp"
#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/gpu/signature.hpp"
#include "collectives/kernels/combine.hpp"
#include "collectives/kernels/stops.hpp"

namespace gdrx::gpu {

Result<std::span<std::byte>> CudaPath::rail_memory(std::uint64_t bytes) {
  const OnDevice here(device_);
  if (bytes > kRailBytes) {
    return fail(Errc::unsupported,
                fmt::format("a rail of {} bytes has no room in the {} of a GPU's arena", bytes,
                            kRailBytes));
  }
  auto* const rail = reinterpret_cast<std::byte*>(held_->own->data() + kPairSlotsAt - kRailBytes);
  GDRX_TRY(run_aside([&](cudaStream_t stream) { return cudaMemsetAsync(rail, 0, bytes, stream); },
                     "clearing a rail's memory"));
  return std::span(rail, bytes);
}

Result<void> CudaPath::combine(const HostSum& what, void* stream) {
  const OnDevice here(device_);
  return check(launch_combine(what, held_->guard(), static_cast<cudaStream_t>(stream)),
               "kernel launch");
}

Result<void> CudaPath::step_flags(const FlagStep& step, void* stream) {
  const OnDevice here(device_);
  auto* const to = static_cast<cudaStream_t>(stream);
  GDRX_TRY(follow(to));
  return check(launch_flags(call_, step, held_->flags, to), "kernel launch");
}

Result<bool> CudaPath::relay(const Work& what, const Relay& between, void* stream) {
  call_.input = what.input;
  call_.output = what.output;
  call_.bytes = what.bytes;
  call_.block = what.block;
  call_.op = static_cast<std::int32_t>(what.op);
  call_.finish_over = 0;
  call_.timeout_ns = timeout_of(what.timeout);
  call_.type = static_cast<std::int32_t>(what.type);
  call_.signature = signature_of_relay(call_);
  if (!is_small_relay(call_, between)) return false;
  const OnDevice here(device_);
  auto* const to = static_cast<cudaStream_t>(stream);
  GDRX_TRY(follow(to));
  const bool crowded = held_->share != nullptr && held_->share->most() != 0;
  GDRX_TRY(check(launch_relay(call_, between, held_->flags, crowded, to), "kernel launch"));
  return true;
}

}  // namespace gdrx::gpu
