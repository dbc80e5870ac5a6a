// SPDX-License-Identifier: Apache-2.0
// Memory that a sender writes into without the receive ring: naming it, and flushing what came to a
// GPU.
#include "plugin/core/receiver.hpp"

namespace gdrx::net {

Result<std::uint32_t> Receiver::hand_over(std::span<std::byte> memory) {
  if (!exporter_) return fail(Errc::internal, "GPU memory is not taken here");
  return exporter_->give(memory);
}

std::uint32_t Receiver::hand_over(const MemoryRegion& region) {
  HandedOver& known = handed_over_[&region];
  if (known.owners++ > 0) return known.id;
  known.id = ++given_;
  const Given given{kMagic, known.id, region.bytes().size()};
  Blob payload;
  append_blob(payload, std::as_bytes(std::span(&given, 1)));
  append_blob(payload, device_context().export_key(region));
  tell(payload);
  return known.id;
}

void Receiver::take_back(const MemoryRegion& region) {
  const auto found = handed_over_.find(&region);
  if (found == handed_over_.end() || --found->second.owners > 0) return;
  const Given gone{kMagic, found->second.id, 0};
  handed_over_.erase(found);
  for (Flushing& flush : flushes_) {  // of an abort: nobody will look at that memory
    if (flush.active && flush.region == &region) flush.done = true;
  }
  Blob payload;
  append_blob(payload, std::as_bytes(std::span(&gone, 1)));
  append_blob(payload, {});
  tell(payload);
}

Result<void*> Receiver::flush(const MemoryRegion& region) {
  GDRX_TRY(healthy());
  for (std::size_t i = 0; i < flushes_.size(); ++i) {
    Flushing& flush = flushes_[i];
    if (flush.active) continue;
    flush.region = &region;
    flush.started = flush.done = false;
    if (!GDRX_TRY(start(flush))) return nullptr;
    flush.active = true;
    return encode({index(), static_cast<std::uint16_t>(kClearToSendGroups + i), flush.life});
  }
  return fail(Errc::invalid_argument, "more flushes are under way than NCCL has requests");
}

Result<bool> Receiver::start(Flushing& flush) {
  const auto slot = static_cast<std::uint32_t>(&flush - flushes_.data());
  const Flush begun =
      GDRX_TRY(device_context().device().flush(*flush.region, cookie_of(index(), slot)));
  flush.started = begun == Flush::started;
  flush.done = begun == Flush::not_needed;
  return !flush.done;
}

// Of the writes to the clear-to-send ring nobody waits for the end: what is reported with a slot is
// a flush.
void Receiver::on_written(std::uint32_t slot) {
  if (slot < flushes_.size() && flushes_[slot].active) flushes_[slot].done = true;
}

Result<Answer> Receiver::test_flush(RequestId id) {
  const std::size_t slot = id.slot - kClearToSendGroups;
  if (slot >= flushes_.size() || !flushes_[slot].active || flushes_[slot].life != id.life) {
    return fail(Errc::invalid_argument, "test() of a flush that is done already");
  }
  Flushing& flush = flushes_[slot];
  if (!flush.done && !flush.started) GDRX_TRY(start(flush));
  if (!flush.done) GDRX_TRY(device_context().poll());
  if (!flush.done) {
    GDRX_TRY(healthy());
    return Answer{};
  }
  flush.active = false;
  ++flush.life;
  return Answer{Progress::done, 0, nullptr};
}

}  // namespace gdrx::net
