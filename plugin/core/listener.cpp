// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/listener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

namespace gdrx::net {
Result<std::unique_ptr<Listener>> Listener::open(std::shared_ptr<DeviceContext> device_context,
                                                 const SocketAddress& address) {
  auto listener = std::unique_ptr<Listener>(new Listener(std::move(device_context)));
  SocketAddress any_port = address;
  any_port.port = 0;
  listener->socket_ =
      GDRX_TRY(Socket::listen(any_port, listener->device_context_->config().port_range));
  listener->handle_.address = GDRX_TRY(listener->socket_.local_address());
  const Key fresh = GDRX_TRY(Key::random());
  std::copy(fresh.bytes().begin(), fresh.bytes().end(), listener->handle_.key.begin());
  listener->key_ =
      GDRX_TRY(side_channel_key(listener->handle_, listener->device_context_->config()));
  return listener;
}

Result<std::unique_ptr<Receiver>> Listener::accept() {
  if (auto receiver = serve_all()) return receiver;  // before somebody is put out
  let_in();
  return serve_all();
}

std::unique_ptr<Receiver> Listener::serve_all() {
  for (auto pending = pending_.begin(); pending != pending_.end();) {
    const auto served = serve(**pending);
    if (served && *served == Progress::pending) {
      ++pending;
      continue;
    }
    auto receiver = std::move((*pending)->receiver);
    if (!served)
      refused_.warn(device_context_->log(), steady_clock().now(), "a connection is refused: {}",
                    describe(served.error()));
    if (served && receiver) {
      receiver->keep(std::move((*pending)->greeting));
      pending_.erase(pending);
      return receiver;
    }
    pending = pending_.erase(pending);
  }
  return nullptr;
}

void Listener::let_in() {
  const auto say = [this](const char* what, const Error& why) {
    refused_.warn(device_context_->log(), steady_clock().now(), "{}: {}", what, describe(why));
  };
  const auto news = admission_.turn(
      socket_, [this] { return pending_.size(); },
      [this] {
        return put_out_a_stranger(pending_,
                                  [](const auto& pending) { return pending->silent_since(); });
      },
      [&](Socket socket) {
        auto find = [key = key_](std::string_view wanted) {
          return wanted == kSideChannel ? std::optional<Key>(key) : std::nullopt;
        };
        auto pending = SecureSocket::server(std::move(socket), std::move(find));
        if (!pending) return say("a connection is dropped", pending.error());
        pending_.push_back(std::make_unique<PendingPeer>(std::move(*pending)));
      });
  if (news) say("connections wait", *news);
}

// An error of one ends that one alone.
Result<Progress> Listener::serve(PendingPeer& pending) {
  if (!pending.receiver && !pending.refused) {
    const auto frame = GDRX_TRY(pending.greeting.pull());
    if (!frame) return Progress::pending;
    auto made = greet(*frame, to_string(GDRX_TRY(pending.greeting.socket().peer_address())));
    if (made && !*made) {
      pending.refused = true;
      pending.greeting.say(FrameKind::refused, {});
    } else if (made) {
      pending.receiver = std::move(*made);
      const Welcome welcome = pending.receiver->welcome();
      Blob payload;
      append_blob(payload, std::as_bytes(std::span(&welcome, 1)));
      append_blob(payload, device_context_->device().address());
      append_blob(payload, pending.receiver->receive_ring_key());
      pending.greeting.say(FrameKind::accepted, payload);
    } else {
      refused_.warn(device_context_->log(), steady_clock().now(), "a connection is refused: {}",
                    describe(made.error()));
      pending.refused = true;
      pending.greeting.say(FrameKind::refused, std::as_bytes(std::span(made.error().what)));
    }
  }
  if (GDRX_TRY(pending.greeting.push()) == Progress::pending) return Progress::pending;
  return pending.receiver ? pending.receiver->wire_up() : Progress::done;
}

Result<std::unique_ptr<Receiver>> Listener::greet(const Frame& frame, std::string peer_name) {
  Hello hello;
  const auto parts = GDRX_TRY(split_blobs(frame.payload, 3));
  if (frame.kind != FrameKind::hello || parts[0].size() != sizeof hello) {
    return fail(Errc::protocol, "a greeting of another form");
  }
  std::memcpy(&hello, parts[0].data(), sizeof hello);
  if (hello.magic != kMagic || hello.version != kWireVersion) {
    return fail(Errc::protocol, "another version of gdrx: install the same everywhere");
  }
  hello.fabric.back() = '\0';
  if (device_context_->fabric() != hello.fabric.data()) {
    return fail(Errc::mismatch,
                fmt::format("it uses {} where this rank uses {}: set GDRX_TRANSPORT alike",
                            hello.fabric.data(), device_context_->fabric()));
  }
  if (device_context_->knows_another(hello.device_context)) return nullptr;
  return Receiver::create(device_context_, hello, parts[1], parts[2], std::move(peer_name));
}

}  // namespace gdrx::net
