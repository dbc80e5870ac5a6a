// SPDX-License-Identifier: Apache-2.0
#include "plugin/gpu/copier.hpp"

#include <atomic>
#include <cstring>

namespace gdrx::gpu {
namespace {

constexpr unsigned kNonBlocking = 1;  // does not wait for the default stream
// A stream that has failed never writes: so often it is asked.
constexpr std::uint32_t kAskEvery = 4096;
// Less of host memory the driver copies by the compute engine (seen on H200 below 32 KiB), which
// the contexts share by turns of 2 ms while NCCL's kernel runs. So much goes to this GPU by a copy
// engine, and from GPU to GPU at any size.
constexpr std::size_t kLeastByEngine = 32 * 1024;
// So little is written as values, 8 bytes in 1 us: 16 bytes in 7 us instead of 18, of which the end
// of any copy takes 5 (results/gpu/gpu-copies-beside-a-kernel.txt).
constexpr std::size_t kMostAsValues = 64;
constexpr std::size_t kWord = sizeof(std::uint64_t);

}  // namespace

Result<std::unique_ptr<Copier>> Copier::create(std::size_t slots) {
  auto context = GDRX_TRY(OwnContext::of_current_gpu());
  auto copier = std::unique_ptr<Copier>(new Copier(std::move(context)));
  GDRX_TRY(copier->open(slots));
  return copier;
}

Result<void> Copier::open(std::size_t slots) {
  const OwnContext::Inside inside(*context_);
  GDRX_TRY(inside.entered());
  GDRX_TRY(check(driver().stream_create(&stream_, kNonBlocking), "cuStreamCreate"));
  const std::size_t bytes = slots * sizeof(std::uint32_t);
  void* words = nullptr;
  GDRX_TRY(check(driver().host_allocate(&words, bytes, 0), "cuMemHostAlloc"));
  std::memset(words, 0, bytes);
  written_ = static_cast<std::uint32_t*>(words);
  started_.resize(slots);
  const std::size_t all = rooms_.size() * kLeastByEngine;
  GDRX_TRY(check(driver().host_allocate(&rooms_of_host_, all, 0), "cuMemHostAlloc"));
  GDRX_TRY(check(driver().allocate(&rooms_of_gpu_, all), "cuMemAlloc"));
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    rooms_[i].host = static_cast<std::byte*>(rooms_of_host_) + i * kLeastByEngine;
    rooms_[i].gpu = rooms_of_gpu_ + i * kLeastByEngine;
  }
  // What a stream writes goes by the engine of the work before it, and on a new stream by the
  // compute engine: with its turns, 3 ms for 16 bytes (seen on H200).
  return copy(rooms_of_gpu_, reinterpret_cast<Pointer>(rooms_of_host_), kLeastByEngine);
}

Copier::~Copier() {
  const OwnContext::Inside inside(*context_);
  // Copies under way take microseconds and need no peer; then nobody reads or writes any more.
  if (stream_ != nullptr) {
    driver().stream_synchronize(stream_);
    driver().stream_destroy(stream_);
  }
  if (written_ != nullptr) driver().host_free(written_);
  if (rooms_of_host_ != nullptr) driver().host_free(rooms_of_host_);
  if (rooms_of_gpu_ != 0) driver().free(rooms_of_gpu_);
}

Result<void> Copier::copy(Pointer to, Pointer from, std::size_t bytes) {
  return check(driver().copy(to, from, bytes, stream_), "cuMemcpyAsync");
}

// In order, and 8 bytes at once: NCCL's LL has a flag in each 8.
Result<void> Copier::write(Pointer to, std::span<const std::byte> values, std::size_t slot) {
  std::array<StreamWrite, kMostAsValues / kWord + 1> writes;
  const std::size_t count = values.size() / kWord;
  for (std::size_t i = 0; i < count; ++i) {
    writes[i].address = to + i * kWord;
    std::memcpy(&writes[i].value, values.data() + i * kWord, kWord);
  }
  writes[count] = {kWriteValue32, reinterpret_cast<Pointer>(written_ + slot), ++started_[slot]};
  return check(driver().write_values(stream_, static_cast<unsigned>(count + 1), writes.data(), 0),
               "cuStreamBatchMemOp");
}

Result<Progress> Copier::start(std::size_t slot, std::byte* to, std::span<const std::byte> from,
                               bool from_host) {
  const OwnContext::Inside inside(*context_);
  GDRX_TRY(inside.entered());
  const auto target = reinterpret_cast<Pointer>(to);
  if (from_host && from.size() <= kMostAsValues && from.size() % kWord == 0 &&
      target % kWord == 0) {
    GDRX_TRY(write(target, from, slot));
    return Progress::done;
  }
  if (from_host && from.size() < kLeastByEngine) {
    Room& room = rooms_[next_room_ % rooms_.size()];
    if (room.number == started_[room.slot] && !done(room.slot)) return Progress::pending;
    std::memcpy(room.host, from.data(), from.size());
    GDRX_TRY(copy(room.gpu, reinterpret_cast<Pointer>(room.host), kLeastByEngine));
    GDRX_TRY(copy(target, room.gpu, from.size()));
    room.slot = slot;
    room.number = started_[slot] + 1;
    ++next_room_;
  } else {
    GDRX_TRY(copy(target, reinterpret_cast<Pointer>(from.data()), from.size()));
  }
  // One address for the GPU and for processors. After all that the stream did before, by default.
  GDRX_TRY(check(driver().write_value(stream_, reinterpret_cast<Pointer>(written_ + slot),
                                      ++started_[slot], 0),
                 "cuStreamWriteValue32"));
  return Progress::done;
}

bool Copier::done(std::size_t slot) const noexcept {
  const std::atomic_ref<std::uint32_t> word(written_[slot]);
  return word.load(std::memory_order_acquire) == started_[slot];
}

Result<Progress> Copier::poll(std::size_t slot) {
  if (done(slot)) return Progress::done;
  if (++idle_ % kAskEvery != 0) return Progress::pending;
  const OwnContext::Inside inside(*context_);
  const Status status = driver().stream_query(stream_);
  if (status != kNotReady) GDRX_TRY(check(status, "cuStreamQuery"));
  return Progress::pending;
}

}  // namespace gdrx::gpu
