// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_flags.hpp"

namespace gdrx {

GpuWatch::GpuWatch(GpuFlags& flags, const Pieces& pieces, trace::Track* track)
    : flags_(flags), pieces_(pieces), count_(pieces.count()), track_(track) {
  begin_span("scatter", 0);
}

bool GpuWatch::scattered(std::uint64_t number) {
  const std::uint64_t now = flags_.count(gpu::Signal::scattered);
  if (now > scattered_) {
    scattered_ = now;
    span_.end();
    if (now < count_) begin_span("scatter", now);
  }
  return number < now;
}

void GpuWatch::allow_gather() {
  flags_.allow(gpu::WaitFlag::gather);
  if (++allowed_ == count_) begin_span("gather", count_ - 1);
}

bool GpuWatch::gathered() {
  if (flags_.count(gpu::Signal::gathered) == 0) return false;
  span_.end();
  flags_.end();
  return true;
}

// One stream runs them one after the other, so that their spans do not overlap.
void GpuWatch::begin_span(std::string_view what, std::uint64_t number) {
  span_ = trace::Span(
      track_, trace::Row::gpus, trace::Kind::chunk, what,
      {pieces_.piece(number).bytes, trace::kNobody, static_cast<std::uint32_t>(number), {}});
}

}  // namespace gdrx
