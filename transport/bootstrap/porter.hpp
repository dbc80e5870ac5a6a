// SPDX-License-Identifier: Apache-2.0
// The accepting side of mesh links.
#pragma once

#include <list>
#include <optional>
#include <set>
#include <vector>

#include "transport/bootstrap/mesh_links.hpp"
#include "transport/bootstrap/strangers.hpp"

namespace gdrx {

/// Accepts those who know the mesh's nonce and are expected; strangers are dropped, slow ones hold
/// up nobody, and nobody is dropped before he was heard.
class Porter {
 public:
  /// `listener` outlives the porter.
  Porter(const Socket& listener, const MeshSelf& self, std::set<std::int32_t> expected)
      : listener_(listener), self_(self), expected_(std::move(expected)) {}

  /// Errc::timeout names those who have not connected.
  Result<std::vector<MeshLink>> admit(Deadline deadline);

 private:
  struct Visitor {
    explicit Visitor(Socket from) : socket(std::move(from)) {}
    Socket socket;
    FrameReader reader{sizeof(HelloFrame)};
    Silence silence;
  };
  void accept_all();
  bool has_room();
  void settle_all(Deadline deadline);
  void wait(Deadline deadline);
  bool settle(Visitor& visitor, Deadline deadline);

  const Socket& listener_;
  MeshSelf self_;
  std::set<std::int32_t> expected_;
  std::list<Visitor> visitors_;  // in the order of their coming
  bool paused_ = false;          // no more of them for a moment
  std::optional<Error> shortage_;
  std::vector<MeshLink> links_;
};

}  // namespace gdrx
