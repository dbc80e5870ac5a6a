// SPDX-License-Identifier: Apache-2.0
// The accepting side of mesh links.
#pragma once

#include <list>
#include <set>
#include <vector>

#include "transport/bootstrap/mesh_links.hpp"

namespace gdrx {

/// Accepts those who know the mesh's nonce and are expected; strangers are dropped, and slow ones
/// hold up nobody.
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
  };
  Result<void> accept_all();
  void wait(Deadline deadline);
  bool settle(Visitor& visitor, Deadline deadline);

  const Socket& listener_;
  MeshSelf self_;
  std::set<std::int32_t> expected_;
  std::list<Visitor> visitors_;  // in the order of their coming
  std::vector<MeshLink> links_;
};

}  // namespace gdrx
