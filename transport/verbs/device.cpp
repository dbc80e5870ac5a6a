// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/device.hpp"

#include <fmt/format.h>

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "transport/verbs/endpoint.hpp"

namespace gdrx::verbs {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kReadyCompletions = 8192;
constexpr std::size_t kEnoughReady = 1024;  // then the caller takes some first
constexpr std::size_t kBatch = 16;          // completions polled at once
// Polls between two looks at the clock while nothing but data moves.
constexpr std::uint32_t kClockEvery = 32;
constexpr Duration kTick = microseconds(500);
constexpr std::uint32_t kVain = 32;             // polls that find nothing before the first nap
constexpr Duration kEvents = milliseconds(10);  // between looks at the NICs' events: system calls

struct DeviceList {
  explicit DeviceList(const VerbsTable& table)
      : verbs(table), list(table.get_device_list(&count)), error(list == nullptr ? errno : 0) {}
  ~DeviceList() {
    if (list != nullptr) verbs.free_device_list(list);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  const VerbsTable& verbs;
  int count = 0;
  ibv_device** list;
  int error;
};

}  // namespace

Result<std::shared_ptr<VerbsDevice>> VerbsDevice::create(
    const std::shared_ptr<const VerbsTable>& table, Rank self, const Options& options,
    const Clock& clock, const Log& log, std::uint64_t nonce, const cuda::GpuCalls& gpu) {
  auto device = std::shared_ptr<VerbsDevice>(new VerbsDevice);
  device->core_.self = self;
  device->core_.nonce = nonce;
  device->core_.options = options;
  device->core_.clock = &clock;
  device->core_.log = log;
  device->core_.gpu = &gpu;
  if (!options.own_thread) device->core_.helper.stay_in_the_caller();
  device->core_.reserve(kReadyCompletions);
  GDRX_TRY(device->open(table));
  device->place_helper();
  return device;
}

Result<void> VerbsDevice::open(const std::shared_ptr<const VerbsTable>& table) {
  GDRX_TRY(open_rails(table));
  std::vector<std::shared_ptr<ProtectionDomain>> domains;
  for (const auto& rail : core_.rails) domains.push_back(rail->domain());
  return core_.staging.open(core_.options.staging, domains);
}

// In the order of names, so that indexes agree between hosts of a kind.
Result<void> VerbsDevice::open_rails(const std::shared_ptr<const VerbsTable>& table) {
  const DeviceList found(*table);
  std::vector<ibv_device*> devices(found.list, found.list + (found.list ? found.count : 0));
  std::sort(devices.begin(), devices.end(), [](const ibv_device* a, const ibv_device* b) {
    return std::string_view(a->name) < std::string_view(b->name);
  });
  std::string skipped;
  const auto skip = [&](const std::string& what) {
    skipped += (skipped.empty() ? "" : "; ") + what;
  };
  for (ibv_device* device : devices) {
    auto context = Context::open(table, device);
    if (!context) {
      skip(gdrx::describe(context.error()));
      continue;
    }
    for (std::uint8_t port = 1; port <= (*context)->attributes().phys_port_cnt; ++port) {
      const std::string name = fmt::format("{}:{}", device->name, port);
      if (!core_.options.filter.takes(device->name, port)) {
        skip(name + " is not chosen by GDRX_HCA");
        continue;
      }
      const auto state = (*context)->query_port(port);
      if (!state) {
        skip(gdrx::describe(state.error()));
        continue;
      }
      if (state->state != IBV_PORT_ACTIVE) {
        skip(name + " is down");
        continue;
      }
      if (core_.rails.size() == kMaxRails) {
        skip(fmt::format("{} is beyond the {} that are used at once", name, kMaxRails));
        continue;
      }
      const auto qkey = static_cast<std::uint32_t>(core_.nonce & 0x7fffffff);
      auto rail = Rail::open(*context, port, core_.options, qkey);
      if (!rail && rail.error().code == Errc::invalid_argument) return tl::unexpected(rail.error());
      if (!rail) {
        skip(gdrx::describe(rail.error()));
        continue;
      }
      core_.rails.push_back(std::move(*rail));
    }
  }
  if (!skipped.empty()) core_.log.info("verbs: {}", skipped);
  soft_ = core_.options.soft_nap.count() > 0 &&
          std::all_of(core_.rails.begin(), core_.rails.end(),
                      [](const auto& rail) { return rail->soft(); });
  if (!core_.rails.empty()) return {};
  if (found.list == nullptr && found.error != ENOSYS) {
    return fail(Errc::unsupported,
                fmt::format("ibv_get_device_list: {}", std::strerror(found.error)), found.error);
  }
  if (devices.empty()) {  // ENOSYS: the kernel has no RDMA at all
    return fail(Errc::unsupported, "no RDMA NIC is on this host", found.error);
  }
  return fail(Errc::unsupported, "no RDMA NIC can be used: " + skipped);
}

std::string VerbsDevice::ports() const {
  std::string text;
  for (const auto& rail : core_.rails) {
    ibv_gid gid{};
    std::copy(rail->address().gid.begin(), rail->address().gid.end(), gid.raw);
    text += fmt::format("{}{} ({}, {} Gb/s)", text.empty() ? "" : ", ", rail->name(),
                        to_string(gid), rail->address().speed / 1000);
  }
  return text;
}

std::string VerbsDevice::describe() const {
  std::string text = ports();
  const Counters& seen = core_.counters;
  for (const std::string& gpu : core_.gpus) text += "; " + gpu;
  return fmt::format(
      "{}; {} messages, {} bytes copied to be sent, {} staged, {} flushes, {} rails down, {} "
      "fragments resent",
      text, seen.messages, seen.copied, seen.staged, seen.flushes, seen.rails_down, seen.resent);
}

std::string VerbsDevice::state() const {
  std::string text;
  for (const auto& [rank, peer] : peers_) text += (text.empty() ? "" : "\n") + peer->state();
  return text;
}

Blob VerbsDevice::address() const {
  DeviceAddress address;
  address.rails = static_cast<std::uint8_t>(core_.rails.size());
  address.qps = core_.options.qps;
  address.nonce = core_.nonce;
  for (std::size_t i = 0; i < core_.rails.size(); ++i) address.rail[i] = core_.rails[i]->address();
  const auto bytes = std::as_bytes(std::span(&address, 1));
  return {bytes.begin(), bytes.end()};
}

Result<std::unique_ptr<PinnedMemory>> VerbsDevice::pin(std::span<std::byte> memory,
                                                       MemoryKind kind) const {
  std::unique_ptr<PinnedMemory> pinned =
      kind == MemoryKind::cuda
          ? GDRX_TRY(Pinned::create_gpu(shared_from_this(), core_, memory))
          : GDRX_TRY(Pinned::create(shared_from_this(), core_, memory, Buffer()));
  return pinned;
}

Result<std::unique_ptr<PinnedMemory>> VerbsDevice::pin_dma_buf(std::span<std::byte> memory, int fd,
                                                               Bytes offset) const {
  std::unique_ptr<PinnedMemory> pinned =
      GDRX_TRY(Pinned::create_exported(shared_from_this(), core_, memory, fd, offset));
  return pinned;
}

std::unique_ptr<MemoryRegion> VerbsDevice::adopt(std::unique_ptr<PinnedMemory> pinned) {
  return std::make_unique<VerbsRegion>(
      core_, std::unique_ptr<Pinned>(static_cast<Pinned*>(pinned.release())));
}

std::unique_ptr<PinnedMemory> VerbsDevice::disown(std::unique_ptr<MemoryRegion> region) {
  return static_cast<VerbsRegion&>(*region).disown();
}

Result<std::unique_ptr<MemoryRegion>> VerbsDevice::register_memory(std::span<std::byte> memory,
                                                                   MemoryKind kind) {
  return adopt(GDRX_TRY(pin(memory, kind)));
}

Result<std::unique_ptr<MemoryRegion>> VerbsDevice::register_dma_buf(std::span<std::byte> memory,
                                                                    int fd, Bytes offset) {
  return adopt(GDRX_TRY(pin_dma_buf(memory, fd, offset)));
}

Result<std::unique_ptr<MemoryRegion>> VerbsDevice::allocate_memory(std::size_t bytes) {
  Buffer own = GDRX_TRY(Buffer::create(bytes));
  const std::span<std::byte> memory = own.bytes();
  return adopt(GDRX_TRY(Pinned::create(shared_from_this(), core_, memory, std::move(own))));
}

Result<Flush> VerbsDevice::flush(const MemoryRegion& region, std::uint64_t cookie) {
  return flusher_.start(static_cast<const VerbsRegion&>(region).id(), cookie);
}

Result<std::unique_ptr<Endpoint>> VerbsDevice::connect(Rank peer,
                                                       std::span<const std::byte> address) {
  auto decoded = decode_address(address);
  if (!decoded) {
    return fail(Errc::protocol,
                fmt::format("rank {} sent a verbs address: {}", index(peer), decoded.error().what));
  }
  std::vector<RailAddress> own;
  for (const auto& rail : core_.rails) own.push_back(rail->address());
  const Pairing pairing =
      pair_rails(own, std::span(decoded->rail).first(decoded->rails), core_.nonce < decoded->nonce);
  const bool known = peers_.contains(peer);
  Peer* made = GDRX_TRY(make_peer(peer, decoded->nonce, pairing, decoded->qps));
  for (const auto& pair : made->pairs()) {
    auto learned = made->learn(pair->number(), decoded->rail[pair->peer_rail()]);
    if (learned) continue;
    if (!known) drop_newest_peer(peer);
    return tl::unexpected(std::move(learned).error());
  }
  next_tick_ = {};
  return std::make_unique<VerbsEndpoint>(shared_from_this(), *made, decoded->rails);
}

Result<Peer*> VerbsDevice::make_peer(Rank rank, std::uint64_t nonce, const Pairing& pairing,
                                     std::size_t qps) {
  if (qps != core_.options.qps) {
    return fail(Errc::mismatch, fmt::format("rank {} uses {} QPs a rail and this rank {}: set "
                                            "NCCL_IB_QPS_PER_CONNECTION alike",
                                            index(rank), qps, core_.options.qps));
  }
  if (const auto found = peers_.find(rank); found != peers_.end()) {
    const auto& place = found->second;
    if (place->nonce() != nonce) {
      return fail(Errc::protocol, fmt::format("two devices claim to be rank {}", index(rank)));
    }
    if (place->pairing().own_word() != pairing.own_word() ||
        place->pairing().peer_word() != pairing.peer_word()) {
      return fail(Errc::protocol,
                  fmt::format("rank {} joins other ports than this rank does: is it "
                              "another version of gdrx?",
                              index(rank)));
    }
    return place.get();
  }
  const std::size_t count = pairing.count * core_.options.qps;
  if (channels_.size() + count > QpChannel::kMaxChannels) {
    return fail(Errc::unsupported, "too many queue pairs: lower NCCL_IB_QPS_PER_CONNECTION");
  }
  const auto first = static_cast<std::uint32_t>(channels_.size());
  // Whole or not at all: everything that polls takes what is in the table for usable.
  auto made = GDRX_TRY(Peer::create(core_, rank, nonce, pairing, first));
  core_.stirred.reserve(peers_.size() + 1);
  turns_.reserve(peers_.size() + 1);
  for (const auto& pair : made->pairs()) {
    for (QpChannel& channel : pair->channels())
      channels_.push_back({made.get(), pair.get(), &channel});
  }
  Peer* const peer = (peers_[rank] = std::move(made)).get();
  turns_.add(peer);
  return peer;
}

// It has no QP yet: they are made by the first tick().
void VerbsDevice::drop_newest_peer(Rank rank) noexcept {
  const auto found = peers_.find(rank);
  std::erase_if(channels_,
                [&](const ChannelPlace& place) { return place.peer == found->second.get(); });
  std::erase(core_.stirred, found->second.get());
  turns_.remove(found->second.get());
  peers_.erase(found);
}

bool VerbsDevice::poll_rails(bool all) {
  std::array<ibv_wc, kBatch> batch;
  bool any = false;
  for (const auto& rail : core_.rails) {
    const int count = rail->poll(batch, all);
    if (count < 0) {
      core_.log.warn("rail {} dead: its completion queue is broken", rail->name());
      rail->set_broken();
      continue;
    }
    any = any || count > 0;
    for (const ibv_wc& done : std::span(batch).first(static_cast<std::size_t>(count))) {
      const QpChannel::Mark mark = QpChannel::decode(done.wr_id);
      if (mark.channel >= channels_.size()) continue;
      const ChannelPlace& place = channels_[mark.channel];
      // What is left of a QP that is gone says nothing.
      if (place.channel->current(mark)) {
        place.peer->on_completion(done, mark, *place.pair, *place.channel);
      }
    }
  }
  return any;
}

// Somebody whom this rank has not connected to yet, and who knows this device's nonce.
Result<Peer*> VerbsDevice::welcome(const Control& hello) {
  const auto pairing = read_pairing(hello, core_.rails.size());
  if (!pairing) {
    return fail(Errc::protocol, fmt::format("rank {} joins ports that are not there", hello.rank));
  }
  return make_peer(Rank{hello.rank}, hello.from, *pairing, hello.qps);
}

void VerbsDevice::read_control(Instant now) {
  Control message;
  for (const auto& rail : core_.rails) {
    while (rail->receive(message)) {
      if (message.to != core_.nonce) continue;  // not a member, or for a device before this one
      const auto found = peers_.find(Rank{message.rank});
      Peer* peer = found == peers_.end() ? nullptr : found->second.get();
      if (peer == nullptr && message.kind == ControlKind::hello) {
        auto made = welcome(message);
        if (!made) {
          if (core_.isolating) {
            refused_.warn(core_.log, now, "{}", made.error().what);
          } else {
            core_.fail_with(std::move(made).error());
          }
          continue;
        }
        peer = *made;
      }
      if (peer != nullptr && peer->nonce() == message.from) peer->on_control(message, now);
    }
  }
}

void VerbsDevice::tick(Instant now) {
  next_tick_ = now + kTick;
  read_control(now);
  if (now >= next_events_) {
    next_events_ = now + kEvents;
    for (const auto& rail : core_.rails) {
      rail->pump_events(core_.log, now, core_.helper);
      for (const std::uint32_t number : rail->take_failed_qps()) fail_qp(*rail, number, now);
    }
  }
  turns_.stir_some();
  for (std::size_t i = 0; i < core_.stirred.size(); ++i) core_.stirred[i]->tick(now);
}

void VerbsDevice::fail_qp(const Rail& rail, std::uint32_t number, Instant now) {
  for (const ChannelPlace& place : channels_) {
    if (&place.pair->rail() != &rail || !place.channel->open() ||
        place.channel->number() != number) {
      continue;
    }
    return place.pair->fail(fmt::format("its NIC reports an error of qp {:#x}", number), now);
  }
}

// Processors make a soft NIC's packets, here and at the peer's, which may be on this machine: who
// spins takes one of them from those that he waits for.
void VerbsDevice::rest(bool any) {
  if (any) {
    vain_ = 0;
  } else if (++vain_ > kVain) {
    [[maybe_unused]] thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1000UL);  // 1 us
    std::this_thread::sleep_for(core_.options.soft_nap);
  }
}

Result<std::size_t> VerbsDevice::poll(std::span<Completion> completions) {
  bool any = false;
  if (core_.ready() < kEnoughReady) {
    const bool looks_at_clock = polls_++ % kClockEvery == 0 || vain_ > kVain;
    any = poll_rails(looks_at_clock);
    Peer::round_of(core_.stirred, !any);
    if (flusher_.busy()) flusher_.poll();
    if (looks_at_clock) {
      const Instant now = core_.clock->now();
      if (now >= next_tick_) tick(now);
    }
  }
  const std::size_t count = core_.take(completions);
  if (soft_) rest(any || count > 0);
  if (count == 0 && core_.error) return tl::unexpected(*core_.error);
  return count;
}

bool VerbsDevice::busy() const noexcept {
  return flusher_.busy() || std::any_of(peers_.begin(), peers_.end(),
                                        [](const auto& entry) { return entry.second->busy(); });
}

}  // namespace gdrx::verbs
