// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/lane.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <span>

#include "plugin/core/comm.hpp"

namespace gdrx::net {
namespace {

constexpr std::size_t kBatch = 64;

}  // namespace

Result<void> random_bytes(std::span<std::byte> bytes) {
  if (getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) return {};
  return fail(Errc::system, "getrandom", errno);
}

Result<std::shared_ptr<Lane>> Lane::open(Fabric& fabric, const Config& config, const Log& log) {
  auto lane = std::shared_ptr<Lane>(new Lane(config, log));
  lane->fabric_ = fabric.name();
  lane->id_.nonce = GDRX_TRY(random_value<std::uint64_t>());
  // The transport knows its peers by ranks; ours only have to differ.
  lane->id_.rank = static_cast<std::int32_t>(lane->id_.nonce & 0x7fffffff);
  lane->device_ = GDRX_TRY(fabric.open_device(Rank{lane->id_.rank}, config, log));
  lane->device_->isolate_peers();
  return lane;
}

Result<Endpoint*> Lane::endpoint_to(const LaneId& peer, std::span<const std::byte> address) {
  auto& place = peers_[peer.nonce];
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

Result<void> Lane::poll() {
  std::array<Completion, kBatch> batch;
  const std::size_t count = GDRX_TRY(device_->poll(batch));
  for (const Completion& done : std::span(batch).first(count)) {
    const bool immediate = done.kind == CompletionKind::immediate;
    const auto index = static_cast<std::uint16_t>(immediate ? done.immediate : done.cookie >> 32);
    Comm* comm = find_comm_of(*this, index);
    if (comm == nullptr) continue;  // late for one that is closed, or a peer's invention
    if (immediate) {
      comm->on_immediate();
    } else {
      comm->on_written(static_cast<std::uint32_t>(done.cookie));
    }
  }
  return {};
}

}  // namespace gdrx::net
