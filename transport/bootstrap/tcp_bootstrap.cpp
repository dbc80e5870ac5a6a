// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/tcp_bootstrap.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <array>

namespace gdrx {

Result<std::unique_ptr<Bootstrap>> TcpBootstrap::create(const UniqueId& id, Rank rank, int size,
                                                        const Log& log, Deadline deadline) {
  const UniqueId checked = GDRX_TRY(decode_unique_id(std::as_bytes(std::span(&id, 1))));
  Socket socket = GDRX_TRY(Socket::connect(checked.root, deadline));
  log.info("rank {} joins {}", index(rank), to_string(checked.root));
  auto bootstrap = std::unique_ptr<TcpBootstrap>(new TcpBootstrap(std::move(socket), rank, size));
  const HelloFrame hello{{checked.nonce[0], checked.nonce[1]}, index(rank), size};
  const Blob frame = encode_frame(FrameKind::hello, std::as_bytes(std::span(&hello, 1)));
  GDRX_TRY(bootstrap->root_.send_all(frame, deadline));
  const Frame answer = GDRX_TRY(bootstrap->receive(deadline));
  if (answer.kind != FrameKind::accepted) return fail(Errc::protocol, "the root did not answer");
  return std::unique_ptr<Bootstrap>(std::move(bootstrap));
}

Result<Frame> TcpBootstrap::receive(Deadline deadline) {
  std::array<std::byte, 4096> piece;
  while (true) {
    auto frame = GDRX_TRY(reader_.next());
    if (frame && frame->kind == FrameKind::refused) {
      std::string why(reinterpret_cast<const char*>(frame->payload.data()), frame->payload.size());
      return fail(Errc::protocol, fmt::format("the root refused rank {}: {}", index(rank_), why));
    }
    if (frame) return std::move(*frame);
    const std::size_t received = GDRX_TRY(root_.receive_some(piece));
    reader_.feed(std::span(piece).first(received));
    if (received > 0) continue;
    if (auto ready = wait_for(root_.fd(), POLLIN, deadline, "the other ranks"); !ready) {
      return fail(Errc::timeout, fmt::format("rank {}: not all of {} ranks have joined in time "
                                             "(GDRX_INIT_TIMEOUT)",
                                             index(rank_), size_));
    }
  }
}

Result<std::vector<Blob>> TcpBootstrap::all_gather(std::span<const std::byte> mine,
                                                   Deadline deadline) {
  GDRX_TRY(root_.send_all(encode_frame(FrameKind::data, mine), deadline));
  const Frame answer = GDRX_TRY(receive(deadline));
  if (answer.kind != FrameKind::data) return fail(Errc::protocol, "the root answered out of turn");
  return split_blobs(answer.payload, static_cast<std::size_t>(size_));
}

}  // namespace gdrx
