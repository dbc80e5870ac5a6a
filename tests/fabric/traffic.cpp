// SPDX-License-Identifier: Apache-2.0
#include "tests/fabric/traffic.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace gdrx::sim {
namespace {

constexpr std::byte kPoison{0xdb};
constexpr std::byte kCanaryByte{0xca};
constexpr std::uint64_t kCreditCookie = ~std::uint64_t{0};
constexpr std::size_t kHeader = 16;

// By memcmp of the bytes with themselves one further: a loop over bytes takes minutes under
// ThreadSanitizer.
bool all(std::span<const std::byte> bytes, std::byte value) {
  return bytes.empty() ||
         (bytes[0] == value && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace

Traffic::Traffic(Cluster& cluster, std::uint64_t seed, FakeGpu* gpu)
    : cluster_(cluster),
      gpu_(gpu),
      hosts_(static_cast<int>(cluster.hosts.size())),
      random_(seed ^ 0xabcdef),
      seed_(seed) {
  flows_.resize(static_cast<std::size_t>(hosts_ * hosts_));
  taken_.resize(cluster.hosts.size());
  receive_rings_.resize(cluster.hosts.size());
  for (int to = 0; to < hosts_; ++to) {
    ReceiveRing& receive_ring = receive_rings_[static_cast<std::size_t>(to)];
    receive_ring.slots = allocate(to, static_cast<std::size_t>(hosts_) * kSlots * kStride);
    for (int from = 0; from < hosts_; ++from) {
      receive_ring.remote.push_back({});
      if (from == to) continue;
      auto& endpoint = cluster[from].endpoints[static_cast<std::size_t>(to)];
      receive_ring.remote.back() = *endpoint->import_region(receive_ring.slots->export_key());
      Flow& f = flow(from, to);
      f.from = from;
      f.to = to;
      for (Source& source : f.sources) source.region = allocate(from, kLongest);
      for (std::uint64_t number = 0; number < kSlots; ++number) {
        const auto bytes = slot(f, number);
        std::fill(bytes.begin(), bytes.end(), kPoison);
        std::fill_n(bytes.begin(), kCanary, kCanaryByte);
        std::fill_n(bytes.end() - kCanary, kCanary, kCanaryByte);
      }
    }
  }
}

std::unique_ptr<MemoryRegion> Traffic::allocate(int rank, std::size_t bytes) {
  verbs::VerbsDevice& device = *cluster_[rank].device;
  auto made = gpu_ == nullptr ? device.allocate_memory(bytes)
                              : device.register_memory(gpu_->allocate(bytes), MemoryKind::cuda);
  if (!made) throw std::runtime_error(describe(made.error()));
  return *std::move(made);
}

std::span<std::byte> Traffic::seen(const MemoryRegion& region) const {
  return gpu_ == nullptr ? region.bytes() : gpu_->seen(region.bytes());
}

std::size_t Traffic::slot_at(int from, std::uint64_t number) {
  return (static_cast<std::size_t>(from) * kSlots + number % kSlots) * kStride;
}

std::span<std::byte> Traffic::slot(const Flow& f, std::uint64_t number) {
  return seen(*receive_rings_[static_cast<std::size_t>(f.to)].slots)
      .subspan(slot_at(f.from, number), kStride);
}

std::uint64_t Traffic::seed_of(const Flow& f, std::uint64_t number) const {
  return Random(seed_ * 1000003 + static_cast<std::uint64_t>(f.from * 64 + f.to) * 7919 +
                number * 104729)
      .next();
}

std::size_t Traffic::size_of(const Flow& f, std::uint64_t number) const {
  const std::uint64_t draw = seed_of(f, number);
  switch (draw % 4) {
    case 0:
      return (draw >> 8) % 64;
    case 1:
      return (draw >> 8) % 2048;
    case 2:
      return (draw >> 8) % 20000;
    default:
      return (draw >> 8) % (kLongest + 1);
  }
}

std::uint32_t Traffic::immediate_of(const Flow& f, std::uint64_t number) const {
  const auto low = static_cast<std::uint32_t>(number & 0xffff);
  return seed_of(f, number) % 5 == 0 ? low | 0x7fff0000U : low;
}

std::string Traffic::round() {
  for (int rank = 0; rank < hosts_; ++rank) {
    Host& host = cluster_[rank];
    if (!host.error.empty()) return fmt::format("rank {}: {}", rank, host.error);
    auto& seen = taken_[static_cast<std::size_t>(rank)];
    for (; seen < host.completions.size(); ++seen) {
      if (auto wrong = take(rank, host.completions[seen]); !wrong.empty()) return wrong;
    }
    host.completions.clear();
    seen = 0;
    if (auto wrong = flush_next(rank); !wrong.empty()) return wrong;
  }
  for (Flow& f : flows_) {
    if (f.from == f.to) continue;
    if (auto wrong = give_credits(f); !wrong.empty()) return wrong;
    if (auto wrong = post(f); !wrong.empty()) return wrong;
  }
  return {};
}

std::string Traffic::take(int rank, const Completion& completion) {
  const int peer = index(completion.peer);
  if (completion.kind == CompletionKind::immediate) {
    return arrive(flow(peer, rank), completion.immediate);
  }
  if (peer == rank) return flushed(rank, completion.cookie);
  if (completion.cookie == kCreditCookie) return {};
  Flow& f = flow(rank, peer);
  const auto found = f.open.find(completion.cookie);
  if (found == f.open.end()) {
    return fmt::format("rank {}: a write that was not open ended ({} to rank {})", rank,
                       completion.cookie, peer);
  }
  f.open.erase(found);
  ++f.done;
  Source& source = f.sources[completion.cookie % f.sources.size()];
  const auto bytes = seen(*source.region);
  // It may be reused: a later look at it by the NIC sends nonsense, which the receiver notices.
  std::fill(bytes.begin(), bytes.end(), std::byte{0xee});
  source.busy = false;
  return {};
}

// What is in GPU memory is looked at when it is flushed: in the order in which it came.
std::string Traffic::arrive(Flow& f, std::uint32_t immediate) {
  if (gpu_ == nullptr) return receive(f, immediate);
  receive_rings_[static_cast<std::size_t>(f.to)].arrived.push_back({&f, immediate, false});
  return flush_next(f.to);
}

std::string Traffic::flush_next(int rank) {
  ReceiveRing& receive_ring = receive_rings_[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < receive_ring.arrived.size(); ++i) {
    if (receive_ring.arrived[i].flushing) continue;
    auto flush = cluster_[rank].device->flush(*receive_ring.slots, receive_ring.flushed + i);
    if (!flush) return describe(flush.error());
    if (*flush == Flush::pending) return {};
    receive_ring.arrived[i].flushing = true;
    if (*flush == Flush::started) continue;
    const Arrival first = receive_ring.arrived.front();
    receive_ring.arrived.pop_front();
    ++receive_ring.flushed;
    --i;
    if (auto wrong = receive(*first.flow, first.immediate); !wrong.empty()) return wrong;
  }
  return {};
}

std::string Traffic::flushed(int rank, std::uint64_t cookie) {
  ReceiveRing& receive_ring = receive_rings_[static_cast<std::size_t>(rank)];
  if (receive_ring.arrived.empty() || !receive_ring.arrived.front().flushing ||
      cookie != receive_ring.flushed) {
    return fmt::format("rank {}: flush {} ended, not {}", rank, cookie, receive_ring.flushed);
  }
  const Arrival first = receive_ring.arrived.front();
  receive_ring.arrived.pop_front();
  ++receive_ring.flushed;
  return receive(*first.flow, first.immediate);
}

std::string Traffic::receive(Flow& f, std::uint32_t immediate) {
  const std::uint64_t number = f.received++;
  const auto where = [&] {
    return fmt::format("message {} of rank {} to rank {} ({} bytes)", number, f.from, f.to,
                       size_of(f, number));
  };
  if (immediate != immediate_of(f, number)) {
    return fmt::format("{}: immediate {:#x}, not {:#x}", where(), immediate,
                       immediate_of(f, number));
  }
  const std::size_t size = size_of(f, number);
  const auto place = slot(f, number);
  std::uint64_t head = 0;
  std::memcpy(&head, place.data() + kCanary, sizeof head);
  const auto expected = pattern(size, seed_of(f, number));
  if (head != number) return where() + ": its header is that of " + std::to_string(head);
  if (size > 0 && std::memcmp(place.data() + kCanary + kHeader, expected.data(), size) != 0) {
    return where() + ": wrong bytes";
  }
  if (!all(place.first(kCanary), kCanaryByte) || !all(place.last(kCanary), kCanaryByte) ||
      !all(place.subspan(kCanary + kHeader + size, kLongest - size), kPoison)) {
    return where() + ": bytes beside it were written";
  }
  std::fill(place.begin() + kCanary, place.end() - kCanary, kPoison);
  const std::chrono::microseconds keep(random_.below(random_.chance(0.1) ? 40'000 : 50));
  const Instant at = std::max(cluster_.network.now() + keep,
                              f.consumed.empty() ? Instant{} : f.consumed.back().first);
  f.consumed.emplace_back(at, number + 1);
  ++delivered_;
  return {};
}

std::string Traffic::give_credits(Flow& f) {
  while (!f.consumed.empty() && f.consumed.front().first <= cluster_.network.now() &&
         !cluster_[f.to].slow) {
    const std::uint64_t credit = f.consumed.front().second;
    const auto place = slot(f, credit - 1);
    if (!all(place.subspan(kCanary, kStride - 2 * kCanary), kPoison)) {
      return fmt::format("rank {}: a slot of rank {} was written after its message had been taken",
                         f.to, f.from);
    }
    auto posted = cluster_.post(f.to, f.from, std::as_bytes(std::span(&credit, 1)), {},
                                static_cast<Bytes>(f.to) * 64, std::nullopt, kCreditCookie);
    if (!posted) return describe(posted.error());
    if (*posted == Progress::pending) return {};
    f.returned = credit;
    f.consumed.pop_front();
  }
  return {};
}

std::string Traffic::post(Flow& f) {
  std::uint64_t credit = 0;
  std::memcpy(&credit, cluster_[f.from].receive_ring->bytes().data() + f.to * 64, sizeof credit);
  if (credit > f.returned) return "a credit that was never given";
  while (!stopped_ && f.sent - credit < kSlots && !cluster_[f.from].slow) {
    Source& source = f.sources[f.sent % f.sources.size()];
    if (source.busy) return {};
    const std::size_t size = size_of(f, f.sent);
    const auto data = pattern(size, seed_of(f, f.sent));
    const auto bytes = seen(*source.region).first(size);
    std::copy(data.begin(), data.end(), bytes.begin());
    std::array<std::uint64_t, 2> header{f.sent, 0x2222};
    const bool unregistered = gpu_ == nullptr && seed_of(f, f.sent) % 3 == 0;
    WriteOp op;
    op.header = std::as_bytes(std::span(header));
    op.payload = source.region->bytes().first(size);
    op.local = unregistered ? nullptr : source.region.get();
    op.remote =
        receive_rings_[static_cast<std::size_t>(f.to)].remote[static_cast<std::size_t>(f.from)];
    op.offset = slot_at(f.from, f.sent) + kCanary;
    op.has_immediate = true;
    op.immediate = immediate_of(f, f.sent);
    op.cookie = f.sent;
    auto posted = cluster_[f.from].endpoints[static_cast<std::size_t>(f.to)]->post(op);
    if (!posted) return describe(posted.error());
    if (*posted == Progress::pending) return {};
    source.busy = true;
    f.open[f.sent++] = false;
  }
  return {};
}

bool Traffic::finished() const noexcept {
  return std::all_of(flows_.begin(), flows_.end(), [](const Flow& f) {
    return f.received == f.sent && f.done == f.sent && f.consumed.empty();
  });
}

std::string Traffic::unfinished() const {
  std::string text;
  for (const Flow& f : flows_) {
    if (f.received == f.sent && f.done == f.sent && f.consumed.empty()) continue;
    text += fmt::format("; rank {} to rank {}: {} sent, {} received, {} done", f.from, f.to, f.sent,
                        f.received, f.done);
  }
  return text;
}

}  // namespace gdrx::sim
