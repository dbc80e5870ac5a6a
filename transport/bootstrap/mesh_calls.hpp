// SPDX-License-Identifier: Apache-2.0
// The calling side of mesh links.
#pragma once

#include <poll.h>

#include <vector>

#include "transport/bootstrap/mesh_links.hpp"

namespace gdrx {

/// Connections to higher ranks, until both ends of each have shown the key. Its owner drives them
/// beside the ones that come, so that no rank waits for another's turn.
class MeshCalls {
 public:
  /// Both outlive it.
  MeshCalls(const MeshSelf& self, const std::vector<MeshMember>& members)
      : self_(self), members_(members) {}

  Result<void> place(std::int32_t peer, const SocketAddress& address, Deadline deadline);
  bool done() const;
  /// `longest`: to sleep, is cut.
  void prepare_poll(std::vector<pollfd>& entries, Duration& longest);
  /// Errors name the rank. Errc::timeout after the deadline.
  Result<void> step(Deadline deadline);
  std::vector<MeshLink> take();

 private:
  struct Call {
    std::int32_t peer;
    SocketAddress address;
    SecureSocket socket;
    Shortage shortage{};
  };
  tl::unexpected<Error> about(std::int32_t peer, Error error) const;
  Result<SecureSocket> greet(std::int32_t peer, Socket socket) const;
  Result<void> step(Call& call, Deadline deadline) const;

  const MeshSelf& self_;
  const std::vector<MeshMember>& members_;
  std::vector<Call> calls_;
};

}  // namespace gdrx
