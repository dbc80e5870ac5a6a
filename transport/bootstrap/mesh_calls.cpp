// SPDX-License-Identifier: Apache-2.0
#include "transport/bootstrap/mesh_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace gdrx {
namespace {

constexpr std::chrono::milliseconds kGreetAgain{20};

}  // namespace

Result<SecureSocket> MeshCalls::greet(std::int32_t peer, Socket socket) const {
  const Key key = GDRX_TRY(self_.link_key(self_.rank, peer));
  auto secure =
      GDRX_TRY(SecureSocket::client(std::move(socket), link_identity(self_.rank, peer), key));
  (void)secure.handshake();  // begins; step() judges
  return secure;
}

// The same error, with the rank that it is about before it.
tl::unexpected<Error> MeshCalls::about(std::int32_t peer, Error error) const {
  error.what = fmt::format("control connection to {}: {}", name_member(members_, peer), error.what);
  return tl::unexpected(std::move(error));
}

Result<void> MeshCalls::place(std::int32_t peer, const SocketAddress& address, Deadline deadline) {
  auto socket = Socket::connect(address, deadline);
  if (!socket) return about(peer, socket.error());
  auto greeted = greet(peer, std::move(*socket));
  if (!greeted) return about(peer, greeted.error());
  calls_.push_back({peer, address, std::move(*greeted)});
  return {};
}

bool MeshCalls::done() const {
  return std::all_of(calls_.begin(), calls_.end(),
                     [](const Call& call) { return call.socket.established(); });
}

void MeshCalls::prepare_poll(std::vector<pollfd>& entries, Duration& longest) {
  for (Call& call : calls_) {
    if (call.socket.established()) continue;
    const bool unsent = call.socket.unsent();
    const int events = POLLIN | call.shortage.events(unsent, call.socket, longest);
    entries.push_back({call.socket.fd(), static_cast<short>(events), 0});
  }
}

Result<void> MeshCalls::step(Call& call, Deadline deadline) const {
  const auto shaken = call.socket.handshake();
  if (shaken && *shaken == Progress::done) return {};
  const Duration left = deadline.left(steady_clock().now());
  if (left == Duration::zero()) return fail(Errc::timeout, "no answer in time");
  if (shaken) return {};
  if (shaken.error().code == Errc::protocol) {
    return fail(Errc::protocol,
                fmt::format("somebody else answers at its address, or GDRX_SECRET_FILE is not the "
                            "same there ({})",
                            shaken.error().what));
  }
  // A door with a crowd before it may have let go of us before it heard us.
  std::this_thread::sleep_for(std::min<Duration>(kGreetAgain, left));
  call.socket = GDRX_TRY(greet(call.peer, GDRX_TRY(Socket::connect_again(call.address, deadline))));
  return {};
}

Result<void> MeshCalls::step(Deadline deadline) {
  for (Call& call : calls_) {
    if (call.socket.established()) continue;
    if (auto stepped = step(call, deadline); !stepped) return about(call.peer, stepped.error());
  }
  return {};
}

std::vector<MeshLink> MeshCalls::take() {
  std::vector<MeshLink> links;
  for (Call& call : calls_) links.emplace_back(call.peer, std::move(call.socket));
  calls_.clear();
  return links;
}

}  // namespace gdrx
