// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/tcp/device.hpp"

namespace gdrx::tcp {

/// A handle: the connection is the device's.
class TcpEndpoint final : public Endpoint {
 public:
  TcpEndpoint(std::shared_ptr<TcpDevice> device, Peer& peer)
      : device_(std::move(device)), peer_(peer) {}
  ~TcpEndpoint() override { device_->finish(peer_); }
  Rank peer() const noexcept override { return peer_.rank; }
  Result<RemoteRegionId> import_region(std::span<const std::byte> key) override;
  Result<Progress> post(const WriteOp& op) override;
  std::string describe() const override { return device_->plain() ? "tcp" : "tcp, encrypted"; }
  void release_region(RemoteRegionId region) noexcept override;
  const Error* error() const noexcept override {
    return device_->isolating() && peer_.error ? &*peer_.error : nullptr;
  }

 private:
  Result<Progress> store(const RegionKey& remote, const WriteOp& op);

  std::shared_ptr<TcpDevice> device_;
  Peer& peer_;
  std::vector<RegionKey> remotes_;
  std::vector<std::uint32_t> free_;  // of remotes_
};

}  // namespace gdrx::tcp
