// SPDX-License-Identifier: Apache-2.0
#include "plugin/core/greeting.hpp"

#include <array>

namespace gdrx::net {

Result<Progress> Greeting::push() {
  while (sent_ < out_.size()) {
    const std::size_t sent = GDRX_TRY(socket_.send_some(std::span(out_).subspan(sent_)));
    if (sent == 0) return Progress::pending;
    sent_ += sent;
  }
  return socket_.flush();
}

Result<std::optional<Frame>> Greeting::pull() {
  std::array<std::byte, 4096> piece;
  while (true) {
    auto frame = GDRX_TRY(reader_.next());
    if (frame) return frame;
    const std::size_t received = GDRX_TRY(socket_.receive_some(piece));
    if (received == 0) return std::optional<Frame>();
    reader_.feed(std::span(piece).first(received));
  }
}

}  // namespace gdrx::net
