// SPDX-License-Identifier: Apache-2.0
#include "plugin/gpu/copier.hpp"

namespace gdrx::gpu {
namespace {

constexpr unsigned kNonBlocking = 1;    // does not wait for the default stream
constexpr unsigned kDisableTiming = 2;  // cheaper to record and to ask

}  // namespace

Result<std::unique_ptr<Copier>> Copier::create(std::size_t slots) {
  Context context = nullptr;
  GDRX_TRY(check(driver().current(&context), "cuCtxGetCurrent"));
  if (context == nullptr) return fail(Errc::internal, "the calling thread has no CUDA context");
  auto copier = std::unique_ptr<Copier>(new Copier);
  GDRX_TRY(check(driver().stream_create(&copier->stream_, kNonBlocking), "cuStreamCreate"));
  for (std::size_t i = 0; i < slots; ++i) {
    Event event = nullptr;
    GDRX_TRY(check(driver().event_create(&event, kDisableTiming), "cuEventCreate"));
    copier->events_.push_back(event);
  }
  return copier;
}

Copier::~Copier() {
  // Copies under way take microseconds and need no peer; then nobody reads or writes any more.
  if (stream_ != nullptr) driver().stream_synchronize(stream_);
  for (const Event event : events_) driver().event_destroy(event);
  if (stream_ != nullptr) driver().stream_destroy(stream_);
}

Result<void> Copier::start(std::size_t slot, std::byte* to, std::span<const std::byte> from) {
  if (!from.empty()) {
    GDRX_TRY(check(driver().copy(reinterpret_cast<Pointer>(to),
                                 reinterpret_cast<Pointer>(from.data()), from.size(), stream_),
                   "cuMemcpyAsync"));
  }
  return check(driver().event_record(events_[slot], stream_), "cuEventRecord");
}

Result<Progress> Copier::poll(std::size_t slot) {
  const Status status = driver().event_query(events_[slot]);
  if (status == kNotReady) return Progress::pending;
  GDRX_TRY(check(status, "cuEventQuery"));
  return Progress::done;
}

}  // namespace gdrx::gpu
