// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/network.hpp"

#include <utility>

namespace gdrx {
namespace {

constexpr std::size_t kCompletionsAtOnce = 64;

}  // namespace

Result<void> Network::open(std::shared_ptr<Device> device) {
  device_ = std::move(device);
  device_->report_to(hearing_.emplace(shape_.ranks));
  receive_ring_ = GDRX_TRY(exec::ReceiveRing::create(shape_, *device_));
  send_rings_.resize(shape_.ranks);
  completions_.resize(kCompletionsAtOnce);
  return {};
}

Result<std::span<const Completion>> Network::poll() {
  const std::size_t count = GDRX_TRY(device_->poll(completions_));
  return std::span<const Completion>(completions_).first(count);
}

Result<exec::SendRing*> Network::to(Rank peer) {
  auto& send_ring = send_rings_[static_cast<std::size_t>(index(peer))];
  if (!send_ring) {
    if (failure_.happened()) return tl::unexpected(failure_.error());  // its memory may be gone
    const Hello& hello = peers_[static_cast<std::size_t>(index(peer))];
    auto endpoint = GDRX_TRY(device_->connect(peer, hello.device_address));
    const RemoteRegionId region = GDRX_TRY(endpoint->import_region(hello.receive_ring_key));
    send_ring = std::make_unique<exec::SendRing>(std::move(endpoint), region,
                                                 receive_ring_->shape(), self_);
  }
  return send_ring.get();
}

// One execution runs at a time, and ends when all its writes are done: the memory is free then.
Result<exec::Links::Scratch> Network::scratch(std::size_t bytes) {
  if (scratch_.pages.bytes().size() < bytes) {
    if (scratch_.registration) registrations_->remove(scratch_.registration.get());
    scratch_ = {};
    scratch_.pages = GDRX_TRY(Pages::create(bytes));
    // Refused (a limit of locked memory, say): then what is sent from it is copied, as any other.
    if (auto made = registrations_->acquire_new(scratch_.pages.bytes(), MemoryKind::host)) {
      scratch_.registration = std::move(*made);
    }
  }
  return Scratch{scratch_.pages.bytes(), scratch_.registration};
}

Result<std::byte*> Network::allocate(std::size_t bytes) {
  Allocation fresh;
  fresh.pages = GDRX_TRY(Pages::create(bytes));
  fresh.registration = GDRX_TRY(registrations_->acquire_new(fresh.pages.bytes(), MemoryKind::host));
  std::byte* memory = fresh.pages.data();
  allocations_.emplace(memory, std::move(fresh));
  return memory;
}

void Network::free(const std::byte* memory) {
  const auto found = allocations_.find(memory);
  registrations_->remove(found->second.registration.get());
  allocations_.erase(found);
}

std::uint64_t Network::allocated_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& [memory, allocation] : allocations_) bytes += allocation.pages.bytes().size();
  return bytes;
}

}  // namespace gdrx
