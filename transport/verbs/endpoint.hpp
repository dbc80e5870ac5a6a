// SPDX-License-Identifier: Apache-2.0
// What a caller holds of a Peer.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "transport/verbs/device.hpp"

namespace gdrx::verbs {

class VerbsEndpoint final : public Endpoint {
 public:
  VerbsEndpoint(std::shared_ptr<VerbsDevice> device, Peer& peer, std::size_t peer_rails)
      : device_(std::move(device)), peer_(peer), peer_rails_(peer_rails) {}
  Rank peer() const noexcept override { return peer_.rank(); }

  Result<RemoteRegionId> import_region(std::span<const std::byte> key) override {
    auto decoded = decode<RegionKey>(key);
    if (!decoded) {
      return fail(Errc::protocol, fmt::format("rank {} sent a region key: {}", index(peer_.rank()),
                                              decoded.error().what));
    }
    if (decoded->rails != peer_rails_ || decoded->base + decoded->length < decoded->base) {
      return fail(Errc::protocol,
                  fmt::format("rank {} sent an impossible region key", index(peer_.rank())));
    }
    if (free_.empty()) {
      free_.reserve(remotes_.size() + 1);  // as release_region() cannot
      remotes_.push_back({*decoded});
      return static_cast<RemoteRegionId>(remotes_.size() - 1);
    }
    const std::size_t place = free_.back();
    free_.pop_back();
    remotes_[place] = {*decoded};
    return static_cast<RemoteRegionId>(place);
  }
  void release_region(RemoteRegionId region) noexcept override {
    free_.push_back(static_cast<std::size_t>(region));
  }
  const Error* error() const noexcept override { return peer_.error(); }
  Result<Progress> post(const WriteOp& op) override {
    if (peer_.error() != nullptr) return tl::unexpected(*peer_.error());
    peer_.stir();
    return peer_.outgoing().post(op, remotes_[static_cast<std::size_t>(op.remote)]);
  }
  std::string describe() const override { return peer_.describe(); }

 private:
  std::shared_ptr<VerbsDevice> device_;
  Peer& peer_;
  std::size_t peer_rails_;
  std::vector<Remote> remotes_;
  std::vector<std::size_t> free_;  // of remotes_
};

}  // namespace gdrx::verbs
