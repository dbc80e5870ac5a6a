// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/connector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace gdrx::net {
namespace {

constexpr std::chrono::milliseconds kComeAgain{20};

}  // namespace

Result<Key> side_channel_key(const Handle& handle, const Config& config) {
  const Secret secret = GDRX_TRY(Secret::load(config.secret_file));
  const Key job = GDRX_TRY(secret.job_key(Key(handle.key)));
  return derive(job, "gdrx net", KeyContext().add(to_string(handle.address)));
}

Result<Handle> decode_handle(std::span<const std::byte> bytes) {
  Handle handle;
  if (bytes.size() < sizeof handle) return fail(Errc::protocol, "a handle that is too short");
  std::memcpy(&handle, bytes.data(), sizeof handle);
  if (handle.magic != kMagic || handle.version != kWireVersion) {
    return fail(Errc::protocol,
                "a handle of another plugin or version: every rank must load the same gdrx");
  }
  return handle;
}

Connector::Connector(std::shared_ptr<DeviceContext> device_context, const SocketAddress& to,
                     Key key, SecureSocket socket)
    : device_context_(std::move(device_context)),
      to_(to),
      key_(std::move(key)),
      greeting_(std::move(socket)),
      deadline_(Deadline::after(steady_clock(), device_context_->config().timeout)) {}

Result<std::unique_ptr<Connector>> Connector::begin(std::shared_ptr<DeviceContext> device_context,
                                                    const Handle& to) {
  const Key key = GDRX_TRY(side_channel_key(to, device_context->config()));
  Socket raw = GDRX_TRY(Socket::begin_connect(to.address));
  auto socket = GDRX_TRY(SecureSocket::client(std::move(raw), std::string(kSideChannel), key));
  return std::unique_ptr<Connector>(
      new Connector(std::move(device_context), to.address, key, std::move(socket)));
}

Result<std::unique_ptr<Sender>> Connector::step() {
  if (!greeting_) {
    if (steady_clock().now() < next_try_) return nullptr;
    if (const auto again = come_again(); !again && !may_come_again(again.error())) {
      return tl::unexpected(again.error());
    }
  }
  auto made = greeting_ ? advance() : nullptr;
  if (made || !may_come_again(made.error())) return made;
  sender_.reset();
  greeting_.reset();
  stage_ = Stage::connecting;
  next_try_ = steady_clock().now() + kComeAgain;
  return nullptr;
}

// A listener with a crowd before it may have let go of us, and a network may still be settling. Who
// refuses has ended: NCCL listens before it tells anybody where.
bool Connector::may_come_again(const Error& error) const {
  return error.code == Errc::peer_lost && error.native != ECONNREFUSED && !refused_ &&
         stage_ != Stage::wiring && !deadline_.passed(steady_clock().now());
}

Result<void> Connector::come_again() {
  next_try_ = steady_clock().now() + kComeAgain;
  Socket raw = GDRX_TRY(Socket::begin_connect(to_));
  greeting_.emplace(
      GDRX_TRY(SecureSocket::client(std::move(raw), std::string(kSideChannel), key_)));
  return {};
}

Result<std::unique_ptr<Sender>> Connector::advance() {
  if (stage_ == Stage::connecting) {
    if (GDRX_TRY(greeting_->socket().connected()) == Progress::done) GDRX_TRY(greet());
  }
  if (stage_ == Stage::greeting) GDRX_TRY(push());
  if (stage_ == Stage::waiting) {
    const auto answer = GDRX_TRY(greeting_->pull());
    if (answer) GDRX_TRY(attach(*answer));
  }
  if (stage_ == Stage::wiring && GDRX_TRY(sender_->wire_up()) == Progress::done) {
    return std::move(sender_);
  }
  if (deadline_.passed(steady_clock().now())) {
    return fail(Errc::timeout, fmt::format("{} does not accept the connection: is its rank alive?",
                                           to_string(to_)));
  }
  return nullptr;
}

Result<void> Connector::push() {
  auto pushed = greeting_->push();
  if (!pushed && pushed.error().code == Errc::protocol && !greeting_->trusted()) {
    return fail(Errc::protocol,
                fmt::format("{} does not hold this connection's key: is GDRX_SECRET_FILE the same "
                            "on every rank? ({})",
                            to_string(to_), pushed.error().what));
  }
  if (GDRX_TRY(std::move(pushed)) == Progress::done) stage_ = Stage::waiting;
  return {};
}

Result<void> Connector::greet() {
  sender_ = GDRX_TRY(Sender::create(device_context_));
  Hello hello;
  hello.device_context = device_context_->id();
  hello.comm = sender_->index();
  const std::string& fabric = device_context_->fabric();
  std::copy_n(fabric.begin(), std::min(fabric.size(), hello.fabric.size() - 1),
              hello.fabric.begin());
  Blob payload;
  append_blob(payload, std::as_bytes(std::span(&hello, 1)));
  append_blob(payload, device_context_->device().address());
  append_blob(payload, sender_->clear_to_send_key());
  greeting_->say(FrameKind::hello, payload);
  stage_ = Stage::greeting;
  return {};
}

Result<void> Connector::ask_for_another_device_context() {
  refused_ = needs_another_device_context_ = true;
  return fail(Errc::mismatch, "two device contexts have the same rank");
}

Result<void> Connector::attach(const Frame& answer) {
  const std::string peer = to_string(to_);
  if (answer.kind == FrameKind::refused && answer.payload.empty())
    return ask_for_another_device_context();
  if (answer.kind == FrameKind::refused) {
    refused_ = true;
    const auto* text = reinterpret_cast<const char*>(answer.payload.data());
    return fail(Errc::peer_lost,
                fmt::format("{} refuses: {}", peer, std::string(text, answer.payload.size())));
  }
  const auto parts = GDRX_TRY(split_blobs(answer.payload, 3));
  Welcome welcome;
  if (answer.kind != FrameKind::accepted || parts[0].size() != sizeof welcome) {
    return fail(Errc::protocol, peer + " answered with something else");
  }
  std::memcpy(&welcome, parts[0].data(), sizeof welcome);
  if (welcome.magic != kMagic || welcome.version != kWireVersion) {
    return fail(Errc::protocol, peer + " speaks another version: install the same gdrx everywhere");
  }
  if (device_context_->knows_another(welcome.device_context))
    return ask_for_another_device_context();
  GDRX_TRY(sender_->attach(welcome, parts[1], parts[2], peer));
  sender_->keep(*std::move(greeting_));
  stage_ = Stage::wiring;
  return {};
}

}  // namespace gdrx::net
