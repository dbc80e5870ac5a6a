// SPDX-License-Identifier: Apache-2.0
// The accepting side of mesh links.
#pragma once

#include <list>
#include <optional>
#include <set>
#include <vector>

#include "transport/bootstrap/mesh_calls.hpp"
#include "transport/bootstrap/mesh_links.hpp"
#include "transport/bootstrap/strangers.hpp"

namespace gdrx {

/// Accepts those who hold their link's key and are expected; strangers are dropped, slow ones hold
/// up nobody, and nobody is dropped before he was heard.
class Acceptor {
 public:
  /// `listener` outlives the acceptor.
  Acceptor(const Socket& listener, const MeshSelf& self, std::set<std::int32_t> expected)
      : listener_(listener), self_(self), expected_(std::move(expected)) {}

  /// Errc::timeout names those who have not connected.
  /// Drives `calls`, too, until both are complete.
  Result<std::vector<MeshLink>> admit(MeshCalls& calls, Deadline deadline);

 private:
  struct PendingPeer {
    explicit PendingPeer(SecureSocket from) : socket(std::move(from)) {}
    SecureSocket socket;
    Silence silence;
    Shortage shortage{};
  };
  void accept_some();
  void settle_all();
  void wait(MeshCalls& calls, Deadline deadline);
  bool settle(PendingPeer& pending);
  std::optional<Key> find(std::string_view identity) const;

  const Socket& listener_;
  MeshSelf self_;
  std::set<std::int32_t> expected_;
  std::list<PendingPeer> pending_;  // in the order of their coming
  Admission admission_;
  std::optional<Error> shortage_;  // the last one
  std::vector<MeshLink> links_;
};

}  // namespace gdrx
