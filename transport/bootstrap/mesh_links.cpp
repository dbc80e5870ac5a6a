// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_links.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <set>

#include "transport/bootstrap/interface.hpp"

namespace gdrx {
namespace {

/// What a rank tells the others of itself.
struct Card {
  SocketAddress address;
  std::int32_t pid = 0;
  std::uint64_t nonce[2] = {};  // rank 0's is the mesh's
  char host[64] = {};
};

std::span<const std::byte> bytes_of(const Card& card) { return std::as_bytes(std::span(&card, 1)); }

Result<Interface> choose_address(Bootstrap& bootstrap, const ControlMesh::Options& options,
                                 Deadline deadline) {
  const std::vector<Blob> hosts =
      GDRX_TRY(bootstrap.all_gather(std::as_bytes(std::span(options.host_id)), deadline));
  const bool one_host = std::all_of(hosts.begin(), hosts.end(),
                                    [&](const Blob& host) { return host == hosts.front(); });
  if (one_host) return Interface{"loopback", loopback_address(), true, false};
  return choose_interface(list_interfaces(), options.socket_ifname);
}

Result<std::vector<Card>> exchange_cards(Bootstrap& bootstrap, const SocketAddress& address,
                                         Deadline deadline) {
  Card mine;
  mine.address = address;
  mine.pid = getpid();
  gethostname(mine.host, sizeof mine.host - 1);
  if (getrandom(mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  const std::vector<Blob> blobs = GDRX_TRY(bootstrap.all_gather(bytes_of(mine), deadline));
  std::vector<Card> cards(blobs.size());
  for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
    if (blobs[rank].size() != sizeof(Card)) {
      return fail(Errc::protocol, fmt::format("rank {} introduced itself in another version's "
                                              "form: install the same gdrx everywhere",
                                              rank));
    }
    std::memcpy(&cards[rank], blobs[rank].data(), sizeof(Card));
    cards[rank].host[sizeof cards[rank].host - 1] = '\0';
  }
  return cards;
}

/// Accepts the lower neighbours; strangers are dropped, slow ones hold up nobody.
class Porter {
 public:
  Porter(const Socket& listener, const HelloFrame& mine, std::set<std::int32_t> expected)
      : listener_(listener), mine_(mine), expected_(std::move(expected)) {}

  Result<std::vector<MeshLink>> admit(Deadline deadline) {
    while (!expected_.empty()) {
      std::vector<pollfd> entries{{listener_.fd(), POLLIN, 0}};
      for (const Visitor& visitor : visitors_) {
        entries.push_back({visitor.socket.fd(), POLLIN, 0});
      }
      poll(entries.data(), entries.size(), std::min(1000, poll_milliseconds(deadline)));
      Socket fresh = GDRX_TRY(listener_.accept());
      if (fresh.valid() && visitors_.size() < kMostVisitors) {
        visitors_.push_back({std::move(fresh), FrameReader(sizeof(HelloFrame))});
      }
      visitors_.remove_if([&](Visitor& visitor) { return settle(visitor, deadline); });
      if (deadline.passed(steady_clock().now())) {
        return fail(Errc::timeout,
                    fmt::format("rank {} has not connected in time", *expected_.begin()));
      }
    }
    return std::move(links_);
  }

 private:
  static constexpr std::size_t kMostVisitors = 256;
  struct Visitor {
    Socket socket;
    FrameReader reader;
  };

  // True when the visitor is no visitor any more: a link now, or sent away.
  bool settle(Visitor& visitor, Deadline deadline) {
    std::array<std::byte, 256> piece;
    const auto received = visitor.socket.receive_some(piece);
    if (!received) return true;
    visitor.reader.feed(std::span(piece).first(*received));
    const auto frame = visitor.reader.next();
    if (!frame) return true;
    if (!*frame) return false;
    const auto hello = decode_hello_frame((*frame)->payload);
    if ((*frame)->kind != FrameKind::hello || !hello || hello->size != mine_.size ||
        hello->nonce[0] != mine_.nonce[0] || hello->nonce[1] != mine_.nonce[1] ||
        expected_.erase(hello->rank) == 0) {
      return true;
    }
    const Blob answer = encode_frame(FrameKind::hello, std::as_bytes(std::span(&mine_, 1)));
    if (!visitor.socket.send_all(answer, deadline)) return true;
    links_.push_back({hello->rank, std::move(visitor.socket), FrameReader(), false});
    return true;
  }

  const Socket& listener_;
  HelloFrame mine_;
  std::set<std::int32_t> expected_;
  std::list<Visitor> visitors_;
  std::vector<MeshLink> links_;
};

Result<MeshLink> connect_to(std::int32_t peer, const Card& card, const HelloFrame& mine,
                            Deadline deadline) {
  Socket socket = GDRX_TRY(Socket::connect(card.address, deadline));
  GDRX_TRY(socket.send_all(encode_frame(FrameKind::hello, std::as_bytes(std::span(&mine, 1))),
                           deadline));
  return MeshLink{peer, std::move(socket), FrameReader(), false};
}

// The accepting side answers once it has let us in: read after all connections are under way.
Result<void> confirm(MeshLink& link, const HelloFrame& mine, Deadline deadline) {
  Blob answer(sizeof(FrameHeader) + sizeof(HelloFrame));
  GDRX_TRY(link.socket.receive_exact(answer, deadline));
  link.reader.feed(answer);
  const auto frame = GDRX_TRY(link.reader.next());
  if (!frame || frame->kind != FrameKind::hello) return fail(Errc::protocol, "no hello came back");
  const HelloFrame hello = GDRX_TRY(decode_hello_frame(frame->payload));
  if (hello.rank != link.peer || hello.nonce[0] != mine.nonce[0] ||
      hello.nonce[1] != mine.nonce[1]) {
    return fail(Errc::protocol,
                fmt::format("at the address of rank {} somebody else answers", link.peer));
  }
  return {};
}

}  // namespace

std::vector<std::int32_t> mesh_neighbours(std::int32_t rank, std::int32_t n) {
  std::set<std::int32_t> neighbours;
  for (std::int64_t step = 1; step < n; step *= 2) {
    neighbours.insert(static_cast<std::int32_t>((rank + step) % n));
    neighbours.insert(static_cast<std::int32_t>((rank + n - step) % n));
  }
  neighbours.erase(rank);
  return {neighbours.begin(), neighbours.end()};
}

Result<MeshLinks> make_mesh_links(Bootstrap& bootstrap, const ControlMesh::Options& options,
                                  const Log& log, Deadline deadline) {
  const std::int32_t rank = index(bootstrap.rank());
  Interface chosen = GDRX_TRY(choose_address(bootstrap, options, deadline));
  chosen.address.port = 0;
  const Socket listener = GDRX_TRY(Socket::listen(chosen.address));
  const SocketAddress address = GDRX_TRY(listener.local_address());
  const std::vector<Card> cards = GDRX_TRY(exchange_cards(bootstrap, address, deadline));
  const HelloFrame mine{{cards[0].nonce[0], cards[0].nonce[1]}, rank, bootstrap.size()};
  MeshLinks mesh;
  mesh.description = fmt::format("{} ({})", chosen.name, to_string(address));
  log.info("rank {}: control connections on {}", rank, mesh.description);
  for (const Card& card : cards) mesh.members.push_back({card.pid, card.host});
  std::set<std::int32_t> lower;
  for (const std::int32_t peer : mesh_neighbours(rank, bootstrap.size())) {
    if (peer < rank) {
      lower.insert(peer);
    } else {
      mesh.links.push_back(
          GDRX_TRY(connect_to(peer, cards[static_cast<std::size_t>(peer)], mine, deadline)));
    }
  }
  auto admitted = GDRX_TRY(Porter(listener, mine, std::move(lower)).admit(deadline));
  for (MeshLink& link : mesh.links) GDRX_TRY(confirm(link, mine, deadline));
  for (MeshLink& link : admitted) mesh.links.push_back(std::move(link));
  std::sort(mesh.links.begin(), mesh.links.end(),
            [](const MeshLink& a, const MeshLink& b) { return a.peer < b.peer; });
  for (const MeshLink& link : mesh.links) link.socket.keep_alive(options.heartbeat);
  return mesh;
}

}  // namespace gdrx
