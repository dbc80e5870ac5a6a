// SPDX-License-Identifier: Apache-2.0
// The root's protocol under any order of frames, departures and rank numbers: each reply goes to a
// guest that is there, nobody is answered twice in a round, and a round's answer has every rank.
#include <cstdlib>
#include <cstring>
#include <map>

#include "transport/bootstrap/root_protocol.hpp"

namespace {

constexpr std::uint64_t kNonce[2] = {7, 11};

void require(bool holds) {
  if (!holds) std::abort();
}

gdrx::Frame frame_of(std::uint8_t kind, std::uint8_t rank, std::uint8_t size, bool knows) {
  gdrx::Frame frame;
  frame.kind = static_cast<gdrx::FrameKind>(kind % 10);
  if (frame.kind == gdrx::FrameKind::hello) {
    const gdrx::HelloFrame hello{{kNonce[0], knows ? kNonce[1] : 0}, rank, size};
    const auto bytes = std::as_bytes(std::span(&hello, 1));
    frame.payload.assign(bytes.begin(), bytes.end());
  } else {
    frame.payload.assign(rank, std::byte{size});
  }
  return frame;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  gdrx::RootProtocol star(kNonce);
  std::map<gdrx::RootProtocol::PeerNumber, int> waiting;  // frames of data without an answer
  const auto apply = [&](const gdrx::RootProtocol::Replies& replies) {
    for (const auto& reply : replies) {
      gdrx::FrameReader reader;
      reader.feed(*reply.frame);
      const auto frame = reader.next();
      require(frame && *frame);
      if ((*frame)->kind == gdrx::FrameKind::data) {
        require(waiting[reply.to] == 1);
        waiting[reply.to] = 0;
        require(gdrx::split_blobs((*frame)->payload, star.members()).has_value());
      }
      if ((*frame)->kind == gdrx::FrameKind::broken) waiting[reply.to] = 0;
      if (reply.close) {
        for (const auto& later : star.leave(reply.to)) waiting[later.to] = 0;
        waiting.erase(reply.to);
      }
    }
  };
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const gdrx::RootProtocol::PeerNumber guest = data[i] % 8;
    const std::uint8_t kind = data[i + 1];
    if (kind >= 0xf0) {
      waiting.erase(guest);
      apply(star.leave(guest));
      continue;
    }
    const gdrx::Frame frame = frame_of(kind, data[i + 2] % 8, data[i + 3] % 8, kind < 0xe0);
    if (frame.kind == gdrx::FrameKind::data && star.is_member(guest)) ++waiting[guest];
    apply(star.take(guest, frame));
    require(star.members() <= 8);
  }
  return 0;
}
