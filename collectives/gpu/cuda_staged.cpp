// SPDX-License-Identifier: Apache-2.0
// What a path does of a call that the host makes: copies through pinned memory, and stops.
#include <algorithm>
#include <bit>

#include "collectives/gpu/capture.hpp"
#include "collectives/gpu/cuda_path.hpp"
#include "collectives/gpu/error.hpp"
#include "collectives/gpu/on_device.hpp"
#include "collectives/kernels/stops.hpp"

namespace gdrx::gpu {
// To give it back while a kernel may use it is for Held.
Result<std::span<std::byte>> CudaPath::pinned(std::uint64_t bytes) {
  const OnDevice here(device_);
  const AnyCapture beside;
  held_->staging.reserve(held_->staging.size() + 1);
  held_->staging.push_back(GDRX_TRY(PooledMemory::borrow_pinned(bytes)));
  return held_->staging.back().bytes();
}

// What was outgrown stays for the graphs that name it. So that it is little, memory grows twofold
// once it grows.
Result<std::span<std::byte>> CudaPath::staging(std::uint64_t bytes) {
  if (bytes > staging_.size()) {
    staging_ = GDRX_TRY(pinned(staging_.empty() ? bytes : std::bit_ceil(bytes)));
  }
  return staging_;
}

Result<void> CudaPath::stage(const Staged& what) {
  const OnDevice here(device_);
  cudaStream_t const stream = GDRX_TRY(join_all(what.streams, what.capture))->stream;
  const Last place{stream, what.capture};
  for (const Messages::Copy& one : what.in) GDRX_TRY(copy(one.from, one.to, one.bytes, place));
  FlagStep turn;
  turn.signals = bit_of(Signal::begun) | bit_of(Signal::scattered);
  turn.waits_for = static_cast<std::int32_t>(WaitFlag::gather);
  turn.record = what.record;
  GDRX_TRY(check(launch_flags(call_, turn, held_->flags, stream), "kernel launch"));
  for (const Messages::Copy& one : what.out) GDRX_TRY(copy(one.from, one.to, one.bytes, place));
  FlagStep end;
  end.signals = bit_of(Signal::gathered);
  GDRX_TRY(check(launch_flags(call_, end, held_->flags, stream), "kernel launch"));
  GDRX_TRY(leave_all(what.streams));
  if (place.capture != 0) return {};
  GDRX_TRY(check(cudaEventRecord(held_->staged, stream), "cudaEventRecord"));
  staged_ = launches_;
  return {};
}

}  // namespace gdrx::gpu
