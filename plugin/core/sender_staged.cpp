// SPDX-License-Identifier: Apache-2.0
// Large messages within a host: other threads store their chunks into the receive ring, which is
// mapped here, and a chunk's head follows once all of it is there.
#include "plugin/core/sender.hpp"

namespace gdrx::net {

void Sender::prepare_staging() {
  if (device_context().copy_threads() == nullptr) return;
  receive_ring_mapped_ = endpoint_->mapped(receive_ring_);
  if (receive_ring_mapped_.size() / chunk_bytes_ < chunks_) return;
  staged_ = std::vector<Staged>(chunks_);
}

bool Sender::by_threads(const Send& send) const noexcept {
  return !staged_.empty() && !send.direct && send.bytes.size() >= kLeastByThreads;
}

void Sender::stage(const ChunkHead& head, std::uint16_t slot) {
  Staged& staged = staged_[next_chunk_ % chunks_];
  staged.head = head;
  staged.slot = slot;
  staged.job.to = receive_ring_mapped_.data() + place_of(next_chunk_) + kChunkHead;
  staged.job.from = sends_[slot].bytes.data() + head.offset;
  staged.job.bytes = head.bytes;
  staged.job.in_order = false;  // the head tells of all of it
  ++sends_[slot].staged;
  ++next_chunk_;
  device_context().copy_threads()->start(staged.job);
  stats::page().thread_chunks.add(1);
}

Result<Progress> Sender::post_staged() {
  while (next_head_ < next_chunk_) {
    Staged& staged = staged_[next_head_ % chunks_];
    if (!staged.job.is_done()) {
      device_context().copy_threads()->help();
      if (!staged.job.is_done()) return Progress::pending;
    }
    if (GDRX_TRY(post_head(staged.head, {}, staged.slot)) == Progress::pending) {
      return Progress::pending;
    }
    --sends_[staged.slot].staged;
    ++next_head_;
  }
  return Progress::done;
}

void Sender::finish_staged() noexcept {
  for (std::uint64_t chunk = next_head_; chunk < next_chunk_; ++chunk) {
    device_context().copy_threads()->finish(staged_[chunk % chunks_].job);
  }
}

}  // namespace gdrx::net
