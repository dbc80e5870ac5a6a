// SPDX-License-Identifier: Apache-2.0
#include "plugin/gpu/copier.hpp"

#include <atomic>
#include <cstring>

namespace gdrx::gpu {
namespace {

constexpr unsigned kNonBlocking = 1;  // does not wait for the default stream
// A stream that has failed never writes: so often it is asked.
constexpr std::uint32_t kAskEvery = 4096;

}  // namespace

Result<std::unique_ptr<Copier>> Copier::create(std::size_t slots) {
  auto copier = std::unique_ptr<Copier>(new Copier(GDRX_TRY(OwnContext::of_current_gpu())));
  const OwnContext::Inside inside(*copier->context_);
  GDRX_TRY(inside.entered());
  GDRX_TRY(check(driver().stream_create(&copier->stream_, kNonBlocking), "cuStreamCreate"));
  const std::size_t bytes = slots * sizeof(std::uint32_t);
  void* words = nullptr;
  GDRX_TRY(check(driver().host_allocate(&words, bytes, 0), "cuMemHostAlloc"));
  std::memset(words, 0, bytes);
  copier->written_ = static_cast<std::uint32_t*>(words);
  copier->started_.resize(slots);
  return copier;
}

Copier::~Copier() {
  const OwnContext::Inside inside(*context_);
  // Copies under way take microseconds and need no peer; then nobody reads or writes any more.
  if (stream_ != nullptr) {
    driver().stream_synchronize(stream_);
    driver().stream_destroy(stream_);
  }
  if (written_ != nullptr) driver().host_free(written_);
}

Result<void> Copier::start(std::size_t slot, std::byte* to, std::span<const std::byte> from) {
  const OwnContext::Inside inside(*context_);
  GDRX_TRY(inside.entered());
  GDRX_TRY(check(driver().copy(reinterpret_cast<Pointer>(to),
                               reinterpret_cast<Pointer>(from.data()), from.size(), stream_),
                 "cuMemcpyAsync"));
  // One address for the GPU and for processors. After all that the stream did before, by default.
  return check(driver().write_value(stream_, reinterpret_cast<Pointer>(written_ + slot),
                                    ++started_[slot], 0),
               "cuStreamWriteValue32");
}

Result<Progress> Copier::poll(std::size_t slot) {
  const std::atomic_ref<std::uint32_t> word(written_[slot]);
  if (word.load(std::memory_order_acquire) == started_[slot]) return Progress::done;
  if (++idle_ % kAskEvery != 0) return Progress::pending;
  const OwnContext::Inside inside(*context_);
  const Status status = driver().stream_query(stream_);
  if (status != kNotReady) GDRX_TRY(check(status, "cuStreamQuery"));
  return Progress::pending;
}

}  // namespace gdrx::gpu
