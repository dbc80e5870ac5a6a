// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/incoming.hpp"

namespace gdrx::verbs {

Result<Incoming::Came> Incoming::arrive(std::uint64_t sequence, unsigned fragment) {
  Came came{sequence, static_cast<std::uint8_t>(fragment)};
  if (sequence - next_ >= kWindow) {
    // Signals are told from what was delivered only modulo their bits.
    const std::uint64_t behind = (next_ - sequence) % (1U << kSequenceBits);
    if (behind > 2 * kWindow || behind > next_) {
      return fail(Errc::protocol, "a message that is outside of the window");
    }
    came.sequence = next_ - behind;
    came.again = came.delivered = true;
    return came;
  }
  Arrival& found = of(sequence);
  came.again = (found.got & 1U << fragment) != 0;
  found.got = static_cast<std::uint16_t>(found.got | 1U << fragment);
  return came;
}

Result<Incoming::Came> Incoming::on_send(std::span<const std::byte> bytes) {
  Head head;
  if (bytes.size() < sizeof head) return fail(Errc::protocol, "a send that is too short");
  std::memcpy(&head, bytes.data(), sizeof head);
  const std::span<const std::byte> body = bytes.subspan(sizeof head);
  const bool envelope = head.kind == HeadKind::envelope;
  if (head.magic != kMagic || (head.kind != HeadKind::eager && !envelope) ||
      head.bytes != body.size() || head.bytes > kEagerBytes || head.stripes > kMaxStripes ||
      envelope != (head.stripes > 0)) {
    return fail(Errc::protocol, "a send of a wrong form");
  }
  const Came came = GDRX_TRY(arrive(head.sequence, 0));
  if (came.again) return came;
  Arrival& found = of(head.sequence);
  found.head = head;
  found.need = static_cast<std::uint16_t>((1U << (head.stripes + 1)) - 1);
  found.has_immediate = head.has_immediate != 0;
  found.immediate = head.immediate;
  found.copied =
      head.region < core_.regions.size() && core_.regions[head.region].path == MemoryPath::staged;
  if (head.sequence == next_) {
    GDRX_TRY(copy(head, body.data()));  // in turn: straight to its place
  } else if (!body.empty()) {
    found.holds = true;
    std::memcpy(stored(head.sequence), body.data(), body.size());
  }
  GDRX_TRY(deliver());
  return came;
}

Result<Incoming::Came> Incoming::on_signal(std::uint32_t word, bool guarded) {
  const auto signal = decode_signal(word, next_);
  if (!signal || (signal->kind == SignalKind::stripe && signal->low >= kMaxStripes)) {
    return fail(Errc::protocol, "an immediate of a wrong form");
  }
  const bool stripe = signal->kind == SignalKind::stripe;
  const Came came = GDRX_TRY(arrive(signal->sequence, stripe ? signal->low + 1U : 0));
  if (came.again) return came;
  Arrival& found = of(signal->sequence);
  found.guarded = found.guarded || guarded;
  if (!stripe) {
    found.need = 1;
    found.has_immediate = signal->kind == SignalKind::whole_immediate;
    found.immediate = signal->low;
  }
  GDRX_TRY(deliver());
  return came;
}

Result<void> Incoming::on_acknowledged(std::uint64_t messages) {
  if (messages <= acknowledged_) return {};
  acknowledged_ = messages;
  return deliver();
}

Result<void> Incoming::deliver() {
  while (true) {
    Arrival& first = window_[next_ % kWindow];
    if (first.need == 0 || first.got != first.need) {
      // More than it needs: a stripe that the envelope does not know.
      if (first.need != 0 && (first.got & ~first.need) != 0) {
        return fail(Errc::protocol, "a stripe that does not belong to its message");
      }
      return {};
    }
    // What its NIC may write once more is given to nobody.
    if (first.guarded && next_ >= acknowledged_) return {};
    if (first.holds) GDRX_TRY(copy(first.head, stored(next_)));
    if (first.copied) GDRX_TRY(copy_to_gpu(first.head));
    if (first.has_immediate) {
      core_.finish({CompletionKind::immediate, peer_, first.immediate, 0});
    }
    first = {};
    ++next_;
  }
}

// Nothing here is trusted: not the region, not the nonce, not the bounds. Null: it has ended, and
// what is late for it is dropped, where peers are isolated.
Result<const LocalRegion*> Incoming::target_of(const Head& head) {
  const bool known = head.region < core_.regions.size();
  if (!known || core_.regions[head.region].bytes.empty() ||
      core_.regions[head.region].nonce != head.nonce) {
    if (known && core_.isolating) return nullptr;
    return fail(Errc::protocol, "a write to a region that is not there");
  }
  const LocalRegion& region = core_.regions[head.region];
  const Bytes size = region.bytes.size();
  if (head.offset > size || head.bytes > size - head.offset ||
      head.payload > size - head.offset - head.bytes) {
    return fail(Errc::protocol, fmt::format("a write of {} bytes at {} of a region of {}",
                                            head.bytes + head.payload, head.offset, size));
  }
  return &region;
}

Result<void> Incoming::copy(const Head& head, const std::byte* bytes) {
  const LocalRegion* found = GDRX_TRY(target_of(head));
  if (found == nullptr || head.bytes == 0) return {};
  const LocalRegion& region = *found;
  std::byte* target = region.reached.data() + head.offset;
  if (region.path == MemoryPath::host || region.path == MemoryPath::staged) {
    std::memcpy(target, bytes, head.bytes);
    return {};
  }
  return core_.gpu->to_device(target, bytes, head.bytes);
}

Result<void> Incoming::copy_to_gpu(const Head& head) {
  const LocalRegion* found = GDRX_TRY(target_of(head));
  if (found == nullptr) return {};
  const LocalRegion& region = *found;
  const Bytes bytes = head.bytes + head.payload;
  if (region.path != MemoryPath::staged || bytes == 0) return {};
  core_.counters.staged += bytes;
  return core_.gpu->to_device(region.bytes.data() + head.offset,
                              region.reached.data() + head.offset, bytes);
}

}  // namespace gdrx::verbs
