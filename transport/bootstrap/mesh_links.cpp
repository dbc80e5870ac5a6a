// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_links.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include "transport/bootstrap/fork.hpp"
#include "transport/bootstrap/interface.hpp"
#include "transport/bootstrap/porter.hpp"
#include "transport/bootstrap/text.hpp"

namespace gdrx {
namespace {

constexpr std::uint32_t kCardVersion = 3;
constexpr std::chrono::milliseconds kComeAgain{20};

/// What a rank tells the others of itself.
struct Card {
  std::uint32_t version = kCardVersion;
  std::int32_t pid = 0;
  SocketAddress address;
  std::uint32_t pid_space = 0;  // of the same host: its namespace of process ids
  std::uint64_t nonce[2] = {};  // rank 0's is the mesh's
  char host[64] = {};           // ends with a zero
};
static_assert(sizeof(Card) == 112 && std::is_trivially_copyable_v<Card>);

Result<Card> decode_card(std::span<const std::byte> bytes, std::size_t rank) {
  Card card;
  if (bytes.size() == sizeof card) std::memcpy(&card, bytes.data(), sizeof card);
  if (bytes.size() != sizeof card || card.version != kCardVersion) {
    return fail(Errc::protocol, fmt::format("rank {} introduced itself in another version's form: "
                                            "install the same gdrx everywhere",
                                            rank));
  }
  card.host[sizeof card.host - 1] = '\0';
  return card;
}

std::string name_of_space(const char* link) {
  std::array<char, 64> space{};
  const ssize_t length = readlink(link, space.data(), space.size());
  return std::string(space.data(), static_cast<std::size_t>(std::max<ssize_t>(0, length)));
}

// Loopback reaches no further than a network namespace, as containers of one host have them.
std::string network_of(const std::string& host_id) {
  return host_id + '\n' + name_of_space("/proc/self/ns/net");
}

// The number of a namespace's inode; 0 if it cannot be had.
std::uint32_t pid_space() {
  struct stat facts {};
  return stat("/proc/self/ns/pid", &facts) == 0 ? static_cast<std::uint32_t>(facts.st_ino) : 0;
}

Result<Interface> choose_address(const std::vector<Blob>& networks, const std::string& ifname) {
  const bool one = std::all_of(networks.begin(), networks.end(),
                               [&](const Blob& other) { return other == networks.front(); });
  if (one) return Interface{"loopback", loopback_address(), true, false};
  return choose_interface(list_interfaces(), ifname);
}

Result<std::vector<Card>> exchange_cards(Bootstrap& bootstrap, const SocketAddress& address,
                                         Deadline deadline) {
  Card mine;
  mine.address = address;
  mine.pid = getpid();
  mine.pid_space = pid_space();
  gethostname(mine.host, sizeof mine.host - 1);
  if (getrandom(mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce) {
    return fail(Errc::system, "getrandom", errno);
  }
  const std::vector<Blob> blobs =
      GDRX_TRY(bootstrap.all_gather(std::as_bytes(std::span(&mine, 1)), deadline));
  std::vector<Card> cards;
  for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
    cards.push_back(GDRX_TRY(decode_card(blobs[rank], rank)));
  }
  return cards;
}

// The same error, with the rank that it is about before it.
tl::unexpected<Error> about(const std::string& who, Error error) {
  error.what = fmt::format("control connection to {}: {}", who, error.what);
  return tl::unexpected(std::move(error));
}

Result<MeshLink> greet(std::int32_t peer, Socket socket, const MeshSelf& self, Deadline deadline) {
  const HelloFrame mine = self.hello_to(peer);
  GDRX_TRY(socket.send_all(encode_frame(FrameKind::hello, std::as_bytes(std::span(&mine, 1))),
                           deadline));
  return MeshLink(peer, std::move(socket));
}

Result<MeshLink> connect_to(std::int32_t peer, const SocketAddress& address, const MeshSelf& self,
                            Deadline deadline) {
  return greet(peer, GDRX_TRY(Socket::connect(address, deadline)), self, deadline);
}

// The accepting side answers once it has let us in: read after all connections are under way.
Result<void> confirm(MeshLink& link, const MeshSelf& self, Deadline deadline) {
  Blob answer(sizeof(FrameHeader) + sizeof(HelloFrame));
  GDRX_TRY(link.socket.receive_exact(answer, deadline));
  link.reader.feed(answer);
  const auto frame = GDRX_TRY(link.reader.next());
  if (!frame || frame->kind != FrameKind::hello) return fail(Errc::protocol, "no hello came back");
  const HelloFrame hello = GDRX_TRY(decode_hello_frame(frame->payload));
  if (hello.rank != link.peer || !self.knows(hello)) {
    return fail(Errc::protocol,
                "somebody else answers at its address (or GDRX_SECRET_FILE is not "
                "the same there)");
  }
  return {};
}

// A door with a crowd before it may have let go of us before it heard our hello.
Result<void> confirm_or_come_again(MeshLink& link, const SocketAddress& address,
                                   const MeshSelf& self, Deadline deadline) {
  while (true) {
    const auto confirmed = confirm(link, self, deadline);
    const Duration left = deadline.left(steady_clock().now());
    if (confirmed || confirmed.error().code != Errc::peer_lost || left == Duration::zero()) {
      return confirmed;
    }
    std::this_thread::sleep_for(std::min<Duration>(kComeAgain, left));
    Socket socket = GDRX_TRY(Socket::connect_again(address, deadline));
    link = GDRX_TRY(greet(link.peer, std::move(socket), self, deadline));
  }
}

Result<void> link_up(MeshLinks& mesh, const std::vector<Card>& cards, const Socket& listener,
                     const MeshSelf& self, Deadline deadline) {
  const auto address_of = [&](std::int32_t peer) -> const SocketAddress& {
    return cards[static_cast<std::size_t>(peer)].address;
  };
  std::set<std::int32_t> lower;
  for (const std::int32_t peer : mesh_neighbours(self.rank, self.size)) {
    if (peer < self.rank) {
      lower.insert(peer);
      continue;
    }
    auto link = connect_to(peer, address_of(peer), self, deadline);
    if (!link) return about(name_member(mesh.members, peer), link.error());
    mesh.links.push_back(std::move(*link));
  }
  std::vector<MeshLink> admitted =
      GDRX_TRY(Porter(listener, self, std::move(lower)).admit(deadline));
  for (MeshLink& link : mesh.links) {
    const auto confirmed = confirm_or_come_again(link, address_of(link.peer), self, deadline);
    if (!confirmed) return about(name_member(mesh.members, link.peer), confirmed.error());
  }
  for (MeshLink& link : admitted) mesh.links.push_back(std::move(link));
  std::sort(mesh.links.begin(), mesh.links.end(),
            [](const MeshLink& a, const MeshLink& b) { return a.peer < b.peer; });
  return {};
}

// A peer's process itself, where the kernel can watch it: some child may hold its sockets.
void watch_processes(MeshLinks& mesh, const std::vector<Card>& cards,
                     const std::vector<Blob>& networks, std::int32_t self) {
  const auto at = [](std::int32_t rank) { return static_cast<std::size_t>(rank); };
  const Card& mine = cards[at(self)];
  for (MeshLink& link : mesh.links) {
    const Card& card = cards[at(link.peer)];
    const bool visible = networks[at(link.peer)] == networks[at(self)] && card.pid_space != 0 &&
                         card.pid_space == mine.pid_space;
    if (!visible || card.pid == mine.pid || card.pid <= 0) continue;
    link.process = Socket(
        Unforked::open([&] { return static_cast<int>(syscall(SYS_pidfd_open, card.pid, 0)); }));
  }
}

}  // namespace

HelloFrame MeshSelf::hello_to(std::int32_t peer) const {
  const Token token = secret.token(kLinkRole, nonce, rank, peer);
  return {{token[0], token[1]}, rank, size};
}

bool MeshSelf::knows(const HelloFrame& hello) const {
  return hello.size == size && same(secret.token(kLinkRole, nonce, hello.rank, rank), hello.nonce);
}

std::vector<std::int32_t> mesh_neighbours(std::int32_t rank, std::int32_t n) {
  std::set<std::int32_t> neighbours;
  for (std::int64_t step = 1; step < n; step *= 2) {
    neighbours.insert(static_cast<std::int32_t>((rank + step) % n));
    neighbours.insert(static_cast<std::int32_t>((rank + n - step) % n));
  }
  neighbours.erase(rank);
  return {neighbours.begin(), neighbours.end()};
}

std::string name_member(const std::vector<MeshMember>& members, std::int32_t rank) {
  const MeshMember& member = members[static_cast<std::size_t>(rank)];
  return fmt::format("rank {} (pid {} on {})", rank, member.pid, member.host);
}

Result<MeshLinks> make_mesh_links(Bootstrap& bootstrap, const ControlMesh::Options& options,
                                  const Log& log, Deadline deadline) {
  const std::int32_t rank = index(bootstrap.rank());
  Unforked::raise_limit();  // every rank of a large job opens more than the usual soft limit
  const std::string network = network_of(options.host_id);
  const std::vector<Blob> networks =
      GDRX_TRY(bootstrap.all_gather(std::as_bytes(std::span(network)), deadline));
  Interface chosen = GDRX_TRY(choose_address(networks, options.socket_ifname));
  chosen.address.port = 0;
  const Socket listener = GDRX_TRY(Socket::listen(chosen.address, options.ports));
  const SocketAddress address = GDRX_TRY(listener.local_address());
  const std::vector<Card> cards = GDRX_TRY(exchange_cards(bootstrap, address, deadline));
  const MeshSelf self{
      {cards[0].nonce[0], cards[0].nonce[1]}, rank, bootstrap.size(), options.secret};
  MeshLinks mesh;
  mesh.description = fmt::format("{} {}", chosen.name, to_string(address));
  log.info("rank {}: control connections on {}", rank, mesh.description);
  for (const Card& card : cards) {
    mesh.members.push_back(
        {card.pid, printable(std::as_bytes(std::span(card.host, std::strlen(card.host))))});
  }
  GDRX_TRY(link_up(mesh, cards, listener, self, deadline));
  watch_processes(mesh, cards, networks, rank);
  return mesh;
}

}  // namespace gdrx
