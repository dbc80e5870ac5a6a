// SPDX-License-Identifier: Apache-2.0
// The call signature as a message of its own: for data that lands where no processor looks.
#pragma once

#include <vector>

#include "collectives/exec/credits.hpp"
#include "collectives/exec/execution.hpp"
#include "collectives/exec/send_ring.hpp"

namespace gdrx::exec {

/// Tells every peer this rank's call, and checks theirs. On lane 0, where the calls' messages
/// follow each other.
class Handshake {
 public:
  /// `peers` must do the same, and may hold this rank, which is left out.
  static Result<Handshake> create(const CallSignature& signature, const std::vector<Rank>& peers,
                                  Links& links);
  /// Errc::mismatch names both calls.
  Result<Step> step();
  /// Not before step() was done: a rank that has not spoken, for a person.
  Rank missing() const noexcept;

 private:
  struct Peer {
    Rank rank{};
    SendRing* send_ring = nullptr;
    bool told = false;
    bool heard = false;
  };
  Handshake(const CallSignature& signature, Links& links) : signature_(signature), links_(&links) {}
  Result<bool> advance(Peer& peer);

  CallSignature signature_;
  Links* links_;
  std::vector<Peer> peers_;
  Credits credits_;
};

}  // namespace gdrx::exec
