// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gdrx::tcp {

Result<RemoteRegionId> TcpEndpoint::import_region(std::span<const std::byte> key) {
  RegionKey remote;
  if (key.size() != sizeof remote) {
    return fail(Errc::protocol, fmt::format("rank {} sent a region key of {} bytes",
                                            index(peer_.rank), key.size()));
  }
  std::memcpy(&remote, key.data(), sizeof remote);
  if (remote.magic != kMagic) {
    return fail(Errc::protocol,
                fmt::format("rank {} sent a region key of another form", index(peer_.rank)));
  }
  if (free_.empty()) {
    remotes_.push_back(remote);
    free_.reserve(remotes_.capacity());
    return static_cast<RemoteRegionId>(remotes_.size() - 1);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  remotes_[place] = remote;
  return static_cast<RemoteRegionId>(place);
}

void TcpEndpoint::release_region(RemoteRegionId region) noexcept {
  remotes_[static_cast<std::size_t>(region)] = {};
  free_.push_back(static_cast<std::uint32_t>(region));
}

Result<Progress> TcpEndpoint::post(const WriteOp& op) {
  if (peer_.error) return tl::unexpected(*peer_.error);
  const RegionKey& remote = remotes_[static_cast<std::size_t>(op.remote)];
  const std::uint64_t length = op.header.size() + op.payload.size();
  if (op.header.size() > kMaxWriteHeader || op.offset > remote.length ||
      length > remote.length - op.offset) {
    return fail(Errc::internal, "a write beyond its region");
  }
  if (peer_.rank == device_->self()) return store(remote, op);
  Write* write = device_->writes().take();
  if (write == nullptr) return Progress::pending;
  MessageHead head;
  head.region = remote.region;
  head.nonce = remote.nonce;
  head.offset = op.offset;
  head.length = length;
  head.kind = op.has_immediate ? Kind::write_immediate : Kind::write;
  head.immediate = op.immediate;
  write->set_front(head, op.header);
  write->payload = op.payload;
  write->cookie = op.cookie;
  peer_.outgoing.push(write);
  device_->send_soon(peer_);
  return Progress::done;
}

// A rank's writes to itself.
Result<Progress> TcpEndpoint::store(const RegionKey& remote, const WriteOp& op) {
  const std::span<std::byte>* region = device_->regions().find(remote.region, remote.nonce);
  if (region == nullptr) return fail(Errc::internal, "a write to a region that has ended");
  if (!device_->ready().has_room()) return Progress::pending;
  std::byte* to = region->data() + op.offset;
  std::copy(op.header.begin(), op.header.end(), to);
  std::copy(op.payload.begin(), op.payload.end(), to + op.header.size());
  if (op.has_immediate) {
    device_->ready().push({CompletionKind::immediate, peer_.rank, op.immediate, 0});
  }
  device_->ready().push({CompletionKind::write_done, peer_.rank, 0, op.cookie});
  return Progress::done;
}

}  // namespace gdrx::tcp
