// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/shm/device.hpp"

namespace gdrx::shm {

class ShmEndpoint final : public Endpoint {
 public:
  static Result<std::unique_ptr<ShmEndpoint>> create(std::shared_ptr<ShmDevice> device, Rank peer,
                                                     std::span<const std::byte> address);
  Rank peer() const noexcept override { return peer_; }
  Result<RemoteRegionId> import_region(std::span<const std::byte> key) override;
  Result<Progress> post(const WriteOp& op) override;
  std::span<std::byte> mapped(RemoteRegionId region) const noexcept override {
    return remotes_[static_cast<std::size_t>(region)].memory.bytes;
  }
  std::string describe() const override { return "shm"; }
  void release_region(RemoteRegionId region) noexcept override;
  const Error* error() const noexcept override { return device_->error_of(peer_); }

 private:
  struct Remote {
    Part memory;
    std::uint16_t number = 0;
  };
  ShmEndpoint(std::shared_ptr<ShmDevice> device, Rank peer)
      : device_(std::move(device)), peer_(peer) {}
  Result<Part> map(const ArenaTicket& memory, std::uint64_t offset, std::uint64_t bytes) const;
  bool has_room() noexcept;

  std::shared_ptr<ShmDevice> device_;
  Rank peer_;
  Part mailbox_part_;  // the peer's
  Mailbox mailbox_;
  std::vector<Remote> remotes_;
  std::vector<std::uint32_t> free_;  // of remotes_
};

}  // namespace gdrx::shm
