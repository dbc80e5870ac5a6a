// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_links.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>

#include "base/printable.hpp"
#include "transport/bootstrap/acceptor.hpp"
#include "transport/bootstrap/fork.hpp"
#include "transport/bootstrap/interface.hpp"
#include "transport/bootstrap/mesh_calls.hpp"
#include "transport/bootstrap/mesh_tree.hpp"

namespace gdrx {
namespace {

constexpr std::uint32_t kCardVersion = 4;
constexpr std::string_view kLinkIdentity = "gdrx-link-3 ";

/// What a rank tells the others of itself.
struct Card {
  std::uint32_t version = kCardVersion;
  std::int32_t pid = 0;
  SocketAddress address;
  std::uint32_t pid_space = 0;               // of the same host: its namespace of process ids
  std::array<std::byte, Key::kBytes> key{};  // rank 0's is the mesh's
  char host[64] = {};                        // ends with a zero
};
static_assert(sizeof(Card) == 128 && std::is_trivially_copyable_v<Card>);

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
  const Key fresh = GDRX_TRY(Key::random());
  std::copy(fresh.bytes().begin(), fresh.bytes().end(), mine.key.begin());
  const std::vector<Blob> blobs =
      GDRX_TRY(bootstrap.all_gather(std::as_bytes(std::span(&mine, 1)), deadline));
  bootstrap.end();
  std::vector<Card> cards;
  for (std::size_t rank = 0; rank < blobs.size(); ++rank) {
    cards.push_back(GDRX_TRY(decode_card(blobs[rank], rank)));
  }
  return cards;
}

Result<void> link_up(MeshLinks& mesh, const std::vector<Card>& cards, const Socket& listener,
                     const MeshSelf& self, Deadline deadline) {
  MeshCalls calls(self, mesh.members);
  std::set<std::int32_t> lower;
  for (const std::int32_t peer : mesh_neighbours(self.rank, self.size)) {
    if (peer < self.rank) {
      lower.insert(peer);
      continue;
    }
    GDRX_TRY(calls.place(peer, cards[static_cast<std::size_t>(peer)].address, deadline));
  }
  mesh.links = GDRX_TRY(Acceptor(listener, self, std::move(lower)).admit(calls, deadline));
  for (MeshLink& link : calls.take()) mesh.links.push_back(std::move(link));
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

Result<Key> MeshSelf::link_key(std::int32_t from, std::int32_t to) const {
  return derive(key, "gdrx link", KeyContext().add(from).add(to).add(size));
}

std::string link_identity(std::int32_t from, std::int32_t to) {
  return fmt::format("{}{} {}", kLinkIdentity, from, to);
}

std::optional<std::pair<std::int32_t, std::int32_t>> read_link_identity(std::string_view identity) {
  if (!identity.starts_with(kLinkIdentity)) return std::nullopt;
  std::pair<std::int32_t, std::int32_t> ends;
  const char* const end = identity.data() + identity.size();
  const auto from = std::from_chars(identity.data() + kLinkIdentity.size(), end, ends.first);
  if (from.ec != std::errc{} || from.ptr == end || *from.ptr != ' ') return std::nullopt;
  const auto to = std::from_chars(from.ptr + 1, end, ends.second);
  if (to.ec != std::errc{} || to.ptr != end) return std::nullopt;
  return ends;
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
  const Key job = GDRX_TRY(options.secret.job_key(Key(cards[0].key)));
  const MeshSelf self{GDRX_TRY(derive(job, "gdrx mesh")), rank, bootstrap.size()};
  MeshLinks mesh;
  mesh.key = GDRX_TRY(derive(job, "gdrx data"));
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
