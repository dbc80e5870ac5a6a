// SPDX-License-Identifier: Apache-2.0
// The side channel's state: a socket on which one frame goes out and one comes in, without waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "gdrx/clock.hpp"
#include "transport/bootstrap/frame.hpp"
#include "transport/bootstrap/socket.hpp"

namespace gdrx::net {

class Greeting {
 public:
  explicit Greeting(Socket socket) : socket_(std::move(socket)), reader_(kMaxGreeting) {}

  void say(FrameKind kind, std::span<const std::byte> payload) {
    out_ = encode_frame(kind, payload);
    sent_ = 0;
  }
  /// Sends what can be sent now.
  Result<Progress> push();
  /// The other side's frame, once it has all come.
  Result<std::optional<Frame>> pull();
  const Socket& socket() const noexcept { return socket_; }

 private:
  static constexpr std::uint32_t kMaxGreeting = 64 * 1024;
  Socket socket_;
  FrameReader reader_;
  Blob out_;
  std::size_t sent_ = 0;
};

}  // namespace gdrx::net
