// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/endpoint.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "transport/ucx/segment.hpp"

namespace gdrx::ucx {
namespace {

// Up to here header and payload travel in one active message, which is copied twice and owes nobody
// an answer; above, the payload is put straight into the peer's memory first.
constexpr std::size_t kMessageBytes = 8192 - kMaxWriteHeader;

// "posix, cma": the transports in UCX's own description of an endpoint.
std::string lanes_of(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  if (stream == nullptr) return "unknown";
  ucp_ep_print_info(endpoint, stream);
  fclose(stream);
  const std::unique_ptr<char, decltype(&std::free)> holder(text, &std::free);
  const std::string info(text, length);
  std::string lanes;
  for (const char* name :
       {"self", "posix", "sysv", "cma", "knem", "xpmem", "tcp", "rc_", "dc_", "ud_"}) {
    if (info.find(":" + std::string(name)) == std::string::npos &&
        info.find(" " + std::string(name) + "/") == std::string::npos) {
      continue;
    }
    lanes += (lanes.empty() ? "" : ", ") + std::string(name);
  }
  return lanes.empty() ? "unknown" : lanes;
}

// Its shared memory goes with a process: UCX then says that it cannot be opened.
tl::unexpected<Error> cannot_reach(Rank peer, ucs_status_t status) {
  const bool gone = status == UCS_ERR_SHMEM_SEGMENT || status == UCS_ERR_UNREACHABLE ||
                    status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_NOT_CONNECTED;
  const bool no_way = status == UCS_ERR_UNREACHABLE;
  return fail(gone ? Errc::peer_lost : Errc::system,
              fmt::format("no connection to rank {}: ucp_ep_create: {}{}", index(peer),
                          ucs_status_string(status),
                          no_way ? "; UCX reaches others by shared memory and RDMA: are the ranks "
                                   "in containers without a common --ipc and --pid? "
                                   "GDRX_TRANSPORT=tcp goes over TCP"
                                 : ""));
}

}  // namespace

Result<std::unique_ptr<UcxEndpoint>> UcxEndpoint::create(std::shared_ptr<UcxDevice> device,
                                                         Rank peer,
                                                         std::span<const std::byte> address) {
  if (address.empty()) return fail(Errc::protocol, "a peer without a ucx address");
  auto endpoint = std::unique_ptr<UcxEndpoint>(new UcxEndpoint(std::move(device), peer));
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxEndpoint::on_error;
  params.err_handler.arg = endpoint.get();
  const auto status = ucp_ep_create(endpoint->device_->worker(), &params, &endpoint->endpoint_);
  if (status != UCS_OK) return cannot_reach(peer, status);
  endpoint->lanes_ = lanes_of(endpoint->endpoint_);
  endpoint->shares_memory_ = endpoint->lanes_.find("sysv") != std::string::npos ||
                             endpoint->lanes_.find("posix") != std::string::npos;
  endpoint->ordered_ = endpoint->lanes_.find("tcp") == std::string::npos;
  return endpoint;
}

UcxEndpoint::~UcxEndpoint() {
  device_->forget(this);
  for (const Remote& remote : remotes_) {
    if (remote.rkey != nullptr) ucp_rkey_destroy(remote.rkey);
  }
  if (endpoint_ == nullptr) return;
  // An isolated peer goes on when this one has nothing more to say; others are gone together.
  if (device_->isolating() && !error_) device_->flush(endpoint_);
  device_->close(endpoint_);
}

Result<RemoteRegionId> UcxEndpoint::import_region(std::span<const std::byte> key) {
  Remote remote;
  if (key.size() < sizeof remote.key) return fail(Errc::protocol, "a region key that is too short");
  std::memcpy(&remote.key, key.data(), sizeof remote.key);
  if (remote.key.magic != kMagic || remote.key.rkey_length != key.size() - sizeof remote.key) {
    return fail(Errc::protocol,
                fmt::format("rank {} sent a region key of another form", index(peer_)));
  }
  if (free_.empty()) {  // before there is something to keep
    free_.reserve(remotes_.size() + 1);
    remotes_.emplace_back();
    free_.push_back(remotes_.size() - 1);
  }
  // A process takes its segments with it when it ends, at any moment: UCX 1.13 would crash on what
  // it then finds no memory for (ucp_ep_rkey_unpack() releases what it has not unpacked).
  std::optional<HeldSegment> held;
  if (shares_memory_ && remote.key.segment >= 0 && !held.emplace(remote.key.segment).is_there()) {
    return fail(Errc::peer_lost,
                fmt::format("the memory of rank {} is gone with its process", index(peer_)));
  }
  const auto status = ucp_ep_rkey_unpack(endpoint_, key.data() + sizeof remote.key, &remote.rkey);
  if (status != UCS_OK) return failed("ucp_ep_rkey_unpack", status);
  void* here = nullptr;
  if (ucp_rkey_ptr(remote.rkey, remote.key.base, &here) == UCS_OK) {
    remote.here = static_cast<std::byte*>(here);
  }
  const std::size_t place = free_.back();
  free_.pop_back();
  remotes_[place] = remote;
  return static_cast<RemoteRegionId>(place);
}

void UcxEndpoint::release_region(RemoteRegionId region) noexcept {
  Remote& remote = remotes_[static_cast<std::size_t>(region)];
  ucp_rkey_destroy(remote.rkey);
  remote = {};
  free_.push_back(static_cast<std::size_t>(region));
}

std::span<std::byte> UcxEndpoint::mapped(RemoteRegionId region) const noexcept {
  const Remote& remote = remotes_[static_cast<std::size_t>(region)];
  if (remote.here == nullptr) return {};
  return {remote.here, static_cast<std::size_t>(remote.key.length)};
}

Result<Progress> UcxEndpoint::post(const WriteOp& op) {
  if (error_) return tl::unexpected(*error_);
  const Remote& remote = remotes_[static_cast<std::size_t>(op.remote)];
  const std::uint64_t length = op.header.size() + op.payload.size();
  if (op.header.size() > kMaxWriteHeader || op.offset > remote.key.length ||
      length > remote.key.length - op.offset) {
    return fail(Errc::internal, "a write beyond its region");
  }
  Pending* pending = device_->take();
  if (pending == nullptr) return Progress::pending;
  pending->endpoint = this;
  pending->cookie = op.cookie;
  pending->head = MessageHead{};
  pending->head.region = remote.key.region;
  pending->head.nonce = remote.key.nonce;
  pending->head.offset = op.offset;
  pending->head.source = index(device_->self());
  pending->head.has_immediate = op.has_immediate ? 1 : 0;
  pending->head.immediate = op.immediate;
  pending->part_count = 0;
  if (!op.header.empty()) {
    std::memcpy(pending->header.data(), op.header.data(), op.header.size());
    pending->parts[pending->part_count++] = {pending->header.data(), op.header.size()};
  }
  if (op.payload.size() > kMessageBytes) return put(pending, remote, op);
  if (!op.payload.empty()) {
    pending->parts[pending->part_count++] = {const_cast<std::byte*>(op.payload.data()),
                                             op.payload.size()};
  }
  return message(pending);
}

Result<Progress> UcxEndpoint::put(Pending* pending, const Remote& remote, const WriteOp& op) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxEndpoint::on_put;
  param.user_data = pending;
  ucs_status_ptr_t request =
      ucp_put_nbx(endpoint_, op.payload.data(), op.payload.size(),
                  remote.key.base + op.offset + op.header.size(), remote.rkey, &param);
  if (UCS_PTR_IS_ERR(request)) {
    device_->give_back(pending);
    report("ucp_put_nbx", UCS_PTR_STATUS(request));
    return Progress::done;  // the device's next poll says why nothing more comes
  }
  if (request != nullptr) return Progress::done;
  if (ordered_) return message(pending);
  flush_then_message(pending);
  return Progress::done;
}

Result<Progress> UcxEndpoint::message(Pending* pending) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE;
  param.cb.send = &UcxEndpoint::on_sent;
  param.user_data = pending;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.datatype = UCP_DATATYPE_IOV;
  ucs_status_ptr_t request =
      ucp_am_send_nbx(endpoint_, kMessageId, &pending->head, sizeof pending->head,
                      pending->parts.data(), pending->part_count, &param);
  if (UCS_PTR_IS_ERR(request)) {
    device_->give_back(pending);
    report("ucp_am_send_nbx", UCS_PTR_STATUS(request));
  } else if (request == nullptr) {
    device_->finish(pending);
  }
  return Progress::done;
}

void UcxEndpoint::flush_then_message(Pending* pending) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxEndpoint::on_flush;
  param.user_data = pending;
  ucs_status_ptr_t request = ucp_ep_flush_nbx(endpoint_, &param);
  if (UCS_PTR_IS_ERR(request)) {
    device_->give_back(pending);
    report("ucp_ep_flush_nbx", UCS_PTR_STATUS(request));
  } else if (request == nullptr) {
    (void)message(pending);
  }
}

void UcxEndpoint::go_on(Pending* pending) {
  switch (pending->next) {
    case Pending::Next::flush:
      return flush_then_message(pending);
    case Pending::Next::message:
      (void)message(pending);
  }
}

void UcxEndpoint::on_put(void* request, ucs_status_t status, void* user) {
  auto* pending = static_cast<Pending*>(user);
  UcxEndpoint* self = pending->endpoint;
  ucp_request_free(request);
  if (status != UCS_OK || self == nullptr) {
    pending->device->give_back(pending);
    if (self != nullptr) self->report("put", status);
    return;
  }
  // It went through UCX's queues: only a flush tells that it has arrived.
  pending->device->defer(pending, Pending::Next::flush);
}

void UcxEndpoint::on_flush(void* request, ucs_status_t status, void* user) {
  auto* pending = static_cast<Pending*>(user);
  UcxEndpoint* self = pending->endpoint;
  ucp_request_free(request);
  if (status != UCS_OK || self == nullptr) {
    pending->device->give_back(pending);
    if (self != nullptr) self->report("flush", status);
    return;
  }
  pending->device->defer(pending, Pending::Next::message);
}

void UcxEndpoint::on_sent(void* request, ucs_status_t status, void* user) {
  auto* pending = static_cast<Pending*>(user);
  ucp_request_free(request);
  UcxEndpoint* self = pending->endpoint;
  if (status == UCS_OK && self != nullptr) {
    return pending->device->contain([&] { pending->device->finish(pending); });
  }
  pending->device->give_back(pending);
  if (self != nullptr && status != UCS_ERR_CANCELED) self->report("message", status);
}

void UcxEndpoint::on_error(void* self, ucp_ep_h, ucs_status_t status) {
  static_cast<UcxEndpoint*>(self)->report("connection", status);
}

void UcxEndpoint::report(const char* what, ucs_status_t status) {
  device_->contain([&] {
    Error error{Errc::peer_lost,
                fmt::format("the {} to rank {} over {} failed: {}", what, index(peer_), lanes_,
                            ucs_status_string(status)),
                0};
    if (!device_->isolating()) return device_->fail_with(std::move(error));
    if (!error_) error_ = std::move(error);
  });
}

}  // namespace gdrx::ucx
