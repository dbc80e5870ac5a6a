// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/staging.hpp"

#include "collectives/comm/side.hpp"

namespace gdrx {

Result<void> Staging::prepare(Half& half, const Call& call, bool output, int ranks, Rank self) {
  const Side side = GDRX_TRY(side_of(call, output, ranks, self));
  const std::size_t size = size_of(call.type);
  const std::size_t bytes = side.end() * size;
  if (bytes == 0) return {};
  auto* const device = output ? call.output : const_cast<std::byte*>(call.input);
  const auto turn = output ? StagingPool::Turn::output : StagingPool::Turn::input;
  half.memory =
      GDRX_TRY(call.collective == Collective::send_recv ? pool_.take(bytes, device)
                                                        : pool_.share(turn, bytes, device));
  for (const exec::Range& run : side.runs) {
    const std::size_t at = run.begin * size;
    half.copies.push_back({device + at, half.memory->data() + at, run.count * size});
  }
  return {};
}

Result<std::unique_ptr<Staging>> Staging::prepare(const Call& call, int ranks, Rank self,
                                                  StagingPool& pool) {
  const bool loaded = cuda::is_loaded();
  const bool input = loaded && cuda::kind_of(call.input) == MemoryKind::cuda;
  const bool output = loaded && cuda::kind_of(call.output) == MemoryKind::cuda;
  if (call.stream != nullptr) {
    GDRX_TRY(cuda::synchronize(call.stream));
  } else if (call.made && call.made->scalar_at != nullptr) {
    GDRX_TRY(cuda::synchronize_default_stream(call.made->scalar_at));
  } else if ((input || output) && (call.count > 0 || call.parts)) {
    GDRX_TRY(cuda::synchronize_default_stream(input ? call.input : call.output));
  }
  if (!input && !output) return std::unique_ptr<Staging>();
  std::unique_ptr<Staging> staging(new Staging(pool));
  if (input) GDRX_TRY(staging->prepare(staging->input_, call, false, ranks, self));
  if (output) GDRX_TRY(staging->prepare(staging->output_, call, true, ranks, self));
  if (!staging->input_.memory && !staging->output_.memory) return std::unique_ptr<Staging>();
  return staging;
}

Result<void> Staging::begin(Call& call) {
  if (input_.memory) {
    GDRX_TRY(pool_.enroll(*input_.memory));
    for (const Copy& copy : input_.copies) {
      GDRX_TRY(cuda::copy_aside_to_host(copy.host, copy.device, copy.bytes));
    }
    call.input = input_.memory->data();
  }
  if (output_.memory) {
    GDRX_TRY(pool_.enroll(*output_.memory));
    call.output = output_.memory->data();
  }
  return {};
}

Result<void> Staging::end() {
  for (const Copy& copy : output_.copies) {
    GDRX_TRY(cuda::copy_aside_to_device(copy.device, copy.host, copy.bytes));
  }
  return {};
}

bool Staging::has(const std::byte* memory) const noexcept {
  return (input_.memory && input_.memory->data() == memory) ||
         (output_.memory && output_.memory->data() == memory);
}

}  // namespace gdrx
