// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "transport/fabric/hearing.hpp"
#include "transport/shm/endpoint.hpp"

namespace gdrx::shm {
Result<std::shared_ptr<ShmDevice>> ShmDevice::create(Rank self, std::uint32_t ranks) {
  // A wrong number of ranks is refused below.
  auto mailbox = GDRX_TRY(Segment::create(Mailbox::bytes(std::min(ranks, kMostRanks))));
  return create(self, ranks, Part::whole(std::move(mailbox)), {});
}

Result<std::shared_ptr<ShmDevice>> ShmDevice::create(Rank self, std::uint32_t ranks, Part mailbox,
                                                     Part room) {
  const auto own = static_cast<std::uint32_t>(index(self));
  if (index(self) < 0 || own >= ranks || ranks > kMostRanks) {
    return fail(Errc::invalid_argument, fmt::format("rank {} of {}: shm is for at most {} ranks",
                                                    index(self), ranks, kMostRanks));
  }
  auto device = std::shared_ptr<ShmDevice>(new ShmDevice(own, ranks));
  device->mailbox_ = Mailbox(mailbox.bytes, ranks);
  device->mailbox_part_ = std::move(mailbox);
  device->room_ = std::move(room);
  device->rung_.resize(device->mailbox_.bell_words());
  return device;
}

Blob ShmDevice::address() const {
  return blob_of(Address{.ranks = static_cast<std::uint32_t>(sources_.size()),
                         .memory = mailbox_part_.segment->ticket(),
                         .offset = mailbox_part_.offset()});
}

Result<std::unique_ptr<MemoryRegion>> ShmDevice::register_memory(std::span<std::byte> memory,
                                                                 MemoryKind kind) {
  if (kind != MemoryKind::host) {
    return fail(Errc::unsupported, "the shm fabric takes host memory; CUDA memory is staged");
  }
  return add_region({nullptr, memory});
}

Result<std::unique_ptr<MemoryRegion>> ShmDevice::allocate_memory(std::size_t bytes) {
  Part room = std::exchange(room_, {});
  if (bytes > 0 && bytes <= room.bytes.size()) {
    room.bytes = room.bytes.first(bytes);
    return add_region(std::move(room));
  }
  return add_region(Part::whole(GDRX_TRY(Segment::create(bytes))));
}

std::unique_ptr<MemoryRegion> ShmDevice::add_region(Part memory) {
  regions_.reserve(regions_.size() + 1);
  auto region = std::make_unique<ShmRegion>(shared_from_this(), next_region_, std::move(memory));
  regions_.push_back(next_region_++);
  return region;
}

ShmRegion::~ShmRegion() { device_->end_region(number_); }

Blob ShmRegion::export_key() const {
  RegionKey key;
  key.region = number_;
  if (memory_.segment) {
    key.memory = memory_.segment->ticket();
    key.offset = memory_.offset();
    key.bytes = memory_.bytes.size();
  }
  return blob_of(key);
}

void ShmDevice::end_region(std::uint16_t number) noexcept { std::erase(regions_, number); }

bool ShmDevice::is_live(std::uint16_t region) const noexcept {
  return std::find(regions_.begin(), regions_.end(), region) != regions_.end();
}

Result<std::unique_ptr<Endpoint>> ShmDevice::connect(Rank peer,
                                                     std::span<const std::byte> address) {
  std::unique_ptr<Endpoint> endpoint =
      GDRX_TRY(ShmEndpoint::create(shared_from_this(), peer, address));
  return endpoint;
}

const Error* ShmDevice::error_of(Rank peer) const noexcept {
  if (lost_.empty()) return nullptr;
  const auto found = lost_.find(peer);
  return found == lost_.end() ? nullptr : &found->second;
}

Result<std::size_t> ShmDevice::poll(std::span<Completion> completions) {
  std::size_t count = done_.take(completions);
  if (mailbox_.has_bell()) hear_bell();
  count = collect(completions, count);
  if (count == 0 && error_) return tl::unexpected(*error_);
  return count;
}

void ShmDevice::hear_bell() noexcept {
  for (std::uint32_t i = 0; i < rung_.size(); ++i) {
    rung_[i] |= mailbox_.hear(i);
  }
}

// Who has much does not silence the others: each turn begins behind the one at which the last ended
// for want of room.
std::size_t ShmDevice::collect(std::span<Completion> completions, std::size_t count) {
  const auto ranks = static_cast<std::uint32_t>(sources_.size());
  if (!mailbox_.has_bell()) {
    for (std::uint32_t i = 0; i < ranks && count < completions.size(); ++i) {
      const std::uint32_t source = next_ + i < ranks ? next_ + i : next_ + i - ranks;
      count = collect_from(source, completions, count);
      if (count == completions.size()) next_ = (source + 1) % ranks;
    }
    return count;
  }
  for (std::uint32_t i = 0; i < rung_.size(); ++i) {
    std::uint64_t& rung = rung_[i];
    while (rung != 0) {
      const auto bit = static_cast<std::uint32_t>(std::countr_zero(rung));
      const std::uint32_t first = (i * 64 + bit) * kWordsALine;
      const std::uint32_t end = std::min(ranks, first + kWordsALine);
      for (std::uint32_t source = first; source < end; ++source) {
        count = collect_from(source, completions, count);
        if (count == completions.size()) return count;  // the bit stays
      }
      rung &= rung - 1;
    }
  }
  return count;
}

std::size_t ShmDevice::collect_from(std::uint32_t source, std::span<Completion> completions,
                                    std::size_t count) {
  Source& from = sources_[source];
  const Word newest = mailbox_.newest(source);
  if (newest == from.taken || from.refused) return count;
  auto fresh = static_cast<std::uint16_t>(newest.number - from.taken.number);
  if (fresh == 0 || fresh > kRing) {
    refuse(source, fmt::format("told of {} messages at once", fresh));
    return count;
  }
  const Rank peer{static_cast<int>(source)};
  for (; fresh > 0 && count < completions.size(); --fresh) {
    const auto number = static_cast<std::uint16_t>(from.taken.number + 1);
    const Word word = fresh == 1 ? newest : mailbox_.entry(source, number);
    if (word.number != number) {
      refuse(source, fmt::format("told of message {} as of {}", word.number, number));
      return count;
    }
    from.taken = word;
    // A late write to a region that has ended is none.
    if (is_live(word.region)) {
      completions[count++] = {CompletionKind::immediate, peer, word.immediate, 0};
    }
  }
  mailbox_.take(source, from.taken.number);
  if (hearing_ != nullptr) hearing_->hear(peer);
  return count;
}

void ShmDevice::refuse(std::uint32_t source, std::string what) {
  sources_[source].refused = true;
  Error error{Errc::protocol, fmt::format("rank {} {} in shared memory", source, what), 0};
  if (isolating_) {
    lost_.emplace(Rank{static_cast<int>(source)}, std::move(error));
  } else if (!error_) {
    error_ = std::move(error);
  }
}

std::string ShmDevice::describe() const {
  return fmt::format("shm: stores into memory that the {} ranks of this host share",
                     sources_.size());
}

}  // namespace gdrx::shm
