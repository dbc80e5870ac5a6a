// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/device_context.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>

#include "plugin/core/comm.hpp"

namespace gdrx::net {
namespace {

constexpr std::size_t kBatch = 64;
// Messages that follow each other at once find their process awake.
constexpr Duration kAwake = std::chrono::microseconds(50);

// Of a nap's length a thread is awake before the next.
constexpr int kAwakePart = 4;

// When something last moved in a device context that naps: one thread may drive several.
std::atomic<Instant> last_moved{Instant{}};

}  // namespace

Result<void> random_bytes(std::span<std::byte> bytes) {
  if (getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) return {};
  return fail(Errc::system, "getrandom", errno);
}

Result<std::shared_ptr<DeviceContext>> DeviceContext::open(const std::string& fabric,
                                                           const NetDevice& on,
                                                           const Config& config, const Log& log) {
  auto device_context = std::shared_ptr<DeviceContext>(new DeviceContext(config, log));
  // A fabric for each device context: one opened for all would make the simulated NICs one host's.
  const std::shared_ptr<Fabric> opened =
      GDRX_TRY(fabric == "ucx" ? open_sockets(config, log) : open_fabric(fabric, config, log));
  device_context->fabric_ = fabric;
  device_context->device_name_ = on.name;
  device_context->pointers_ = on.pointers;
  if (on.software) device_context->longest_nap_ = std::chrono::microseconds(config.net_nap);
  device_context->id_.nonce = GDRX_TRY(random_value<std::uint64_t>());
  // The transport knows its peers by ranks. Those of one device context have to differ: see
  // knows_another().
  device_context->id_.rank = static_cast<std::int32_t>(device_context->id_.nonce & 0x7fffffff);
  device_context->device_ =
      GDRX_TRY(opened->open_device(Rank{device_context->id_.rank}, config, log));
  device_context->device_->isolate_peers();
  device_context->memory_.emplace(device_context->device_);
  if (fabric == "ucx") {
    device_context->copy_threads_ =
        CopyThreads::of_process(config.net_copy_threads, {config.thread_cpus, {}, log});
  }
  return device_context;
}

std::unique_ptr<PinnedMemory> DeviceContext::release(RegistrationRef registration) noexcept {
  if (memory_->owners(registration.get()) == 1) loop_.forget(*registration->region());
  return memory_->release(std::move(registration));
}

void DeviceContext::account() noexcept {
  const DeviceEvents now = device_->events();
  stats::Page& page = stats::page();
  page.rails_down.add(now.rails_down - accounted_.rails_down);
  page.resent.add(now.resent - accounted_.resent);
  page.copied.add(now.copied - accounted_.copied);
  accounted_ = now;
}

Blob DeviceContext::export_key(const MemoryRegion& region) {
  Blob key = region.export_key();
  loop_.remember(key, region);
  return key;
}

bool DeviceContext::knows_another(const DeviceContextId& peer) const noexcept {
  if (peer.nonce == id_.nonce) return false;
  if (peer.rank == id_.rank) return true;
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& known) {
    return known.first != peer.nonce && index(known.second->peer()) == peer.rank;
  });
}

Result<Endpoint*> DeviceContext::endpoint_to(const DeviceContextId& peer,
                                             std::span<const std::byte> address) {
  auto& place = peers_[peer.nonce];
  if (!place && peer.nonce == id_.nonce && fabric_ != "ucx") {
    place = loop_.endpoint(Rank{id_.rank});  // a queue pair is not connected to its own device
  }
  if (!place) {
    auto made = device_->connect(Rank{peer.rank}, address);
    if (!made) {
      peers_.erase(peer.nonce);
      return tl::unexpected(std::move(made).error());
    }
    place = std::move(*made);
  }
  return place.get();
}

Result<void> DeviceContext::poll() {
  std::array<Completion, kBatch> batch;
  std::size_t count = GDRX_TRY(device_->poll(batch));
  if (!loop_.empty()) count += loop_.take(std::span(batch).subspan(count));
  if (count > 0) {
    stir();
    // Of several device contexts: now and then one may overwrite another's count, which nobody will
    // miss.
    stats::page().polls.add(1);
    stats::page().completions.add(count);
  }
  for (const Completion& done : std::span(batch).first(count)) {
    const bool immediate = done.kind == CompletionKind::immediate;
    const auto index = static_cast<std::uint16_t>(immediate ? done.immediate : done.cookie >> 32);
    Comm* comm = find_comm_of(*this, index);
    if (comm == nullptr) continue;  // late for one that is closed, or a peer's invention
    if (immediate) {
      if (comm->is_from(done.peer)) comm->on_immediate(index);
    } else {
      comm->on_written(static_cast<std::uint32_t>(done.cookie));
    }
  }
  return {};
}

void DeviceContext::stir() const noexcept {
  if (longest_nap_ == Duration{}) return;
  last_moved.store(steady_clock().now(), std::memory_order_relaxed);
}

// A poller takes the processor that such a NIC runs on. To sleep as long as nothing has moved makes
// no request's wait more than twice as long. Between two naps the thread looks after the rest of
// what it drives: one nap, not one for each request that waits.
bool DeviceContext::nap() const noexcept {
  if (longest_nap_ == Duration{}) return false;
  thread_local Instant awake_until{};
  const Instant now = steady_clock().now();
  const Duration still = now - last_moved.load(std::memory_order_relaxed);
  if (still < kAwake || now < awake_until) return false;
  const Duration length = std::min(still, longest_nap_);
  std::this_thread::sleep_for(length);
  awake_until = steady_clock().now() + length / kAwakePart;
  stats::page().naps.add(1);
  return true;
}

}  // namespace gdrx::net
