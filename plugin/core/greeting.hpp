// SPDX-License-Identifier: Apache-2.0
// The side channel's state: a TLS connection on which frames go out and come in, without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "gdrx/clock.hpp"
#include "transport/bootstrap/frame.hpp"
#include "transport/bootstrap/secure_socket.hpp"

namespace gdrx::net {

class Greeting {
 public:
  explicit Greeting(SecureSocket socket) : socket_(std::move(socket)), reader_(kMaxGreeting) {}

  /// Behind what has not been sent yet.
  void say(FrameKind kind, std::span<const std::byte> payload) {
    if (sent_ == out_.size()) {
      out_.clear();
      sent_ = 0;
    }
    const Blob frame = encode_frame(kind, payload);
    out_.insert(out_.end(), frame.begin(), frame.end());
  }
  /// Sends what can be sent now.
  Result<Progress> push();
  /// The other side's frame, once it has all come.
  Result<std::optional<Frame>> pull();
  const Socket& socket() const noexcept { return socket_.socket(); }
  /// Both sides have shown the key.
  bool trusted() const noexcept { return socket_.established(); }

 private:
  static constexpr std::uint32_t kMaxGreeting = 64 * 1024;
  SecureSocket socket_;
  FrameReader reader_;
  Blob out_;
  std::size_t sent_ = 0;
};

}  // namespace gdrx::net
