// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/gpu_spans.hpp"

#include <chrono>

namespace gdrx {

std::unique_ptr<GpuSpans> GpuSpans::create(gpu::Streams& streams, trace::Track* track,
                                           const Log& log) {
  if (track == nullptr || !track->has_file()) return nullptr;
  auto timer = streams.timer(kInFlight);
  if (!timer) {
    log.warn("the trace has no times of the GPU: {}", describe(timer.error()));
    return nullptr;
  }
  log.info("trace: times of the GPU are right to {:.1f} us",
           std::chrono::duration<double, std::micro>((*timer)->precision()).count());
  return std::make_unique<GpuSpans>(std::move(*timer), *track);
}

bool GpuSpans::begin(void* stream) noexcept {
  const std::lock_guard lock(mutex_);
  harvest();
  if (count_ == kInFlight) {
    track_.count_untimed();
    return false;
  }
  launched_ = steady_clock().now();
  return timer_->begin((oldest_ + count_) % kInFlight, stream);
}

void GpuSpans::end(void* stream, std::string_view kernel, std::uint64_t bytes,
                   std::uint32_t call) noexcept {
  const std::lock_guard lock(mutex_);
  const std::uint32_t slot = (oldest_ + count_) % kInFlight;
  if (!timer_->end(slot, stream)) {
    track_.count_untimed();
    return;
  }
  Flying& flying = flying_[slot];
  flying.event = {};
  flying.event.kind = trace::Kind::kernel;
  flying.event.row = trace::Row::gpus;
  flying.event.name = kernel;
  flying.event.bytes = bytes;
  flying.event.index = call;
  flying.launched = launched_;
  flying.number.reset();
  ++count_;
}

void GpuSpans::look() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) harvest();
}

// The GPU runs calls in their order, whatever their streams: the first that has not ended hides
// none that has.
void GpuSpans::harvest(Instant by) noexcept {
  for (; count_ > 0; --count_, oldest_ = (oldest_ + 1) % kInFlight) {
    const gpu::Timer::Times times = timer_->read(oldest_);
    if (!times.begin || !times.end || *times.end > by) return;
    Flying& flying = flying_[oldest_];
    // Two clocks: what they are apart must not put a call before its launch or into another.
    const Instant begin = std::max(*times.begin, earliest(flying));
    last_end_ = std::max(*times.end, begin);
    write(flying, begin, last_end_ - begin);
  }
}

void GpuSpans::show(Instant by) noexcept {
  const std::lock_guard lock(mutex_);
  harvest(by);
  const Instant last = std::min(by, steady_clock().now());
  for (std::uint32_t i = 0; i < count_; ++i) {
    const std::uint32_t slot = (oldest_ + i) % kInFlight;
    Flying& flying = flying_[slot];
    const Instant begun = timer_->read(slot).begin.value_or(last);
    // What the GPU had not begun begins where the file ends.
    write(flying, begun < last ? std::max(begun, earliest(flying)) : last, trace::kOpen);
  }
}

void GpuSpans::write(Flying& flying, Instant begin, Duration length) noexcept {
  if (flying.number) {
    track_.set(*flying.number, begin, length);
    return;
  }
  flying.event.begin = begin;
  flying.event.length = length;
  flying.number = track_.add(flying.event);
}

}  // namespace gdrx
