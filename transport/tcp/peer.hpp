// SPDX-License-Identifier: Apache-2.0
// One other rank: its connection, of which both directions are used, and what waits for it.
#pragma once

#include <memory>
#include <optional>

#include "transport/tcp/incoming.hpp"
#include "transport/tcp/outgoing.hpp"

namespace gdrx::tcp {

struct Peer {
  explicit Peer(Rank number) : rank(number), incoming(number) {}

  Rank rank;
  std::optional<Address> address;  // once this side has connected
  std::optional<Nonce> tag;        // as its knock had it
  std::optional<Stream> stream;    // while it is connected
  Outgoing outgoing;
  Incoming incoming;
  std::optional<Error> error;  // lost: final
  bool calling = false;        // a connection of ours is on its way
  bool joining = false;        // one of theirs is
  bool sending = false;        // is in the device's list
  bool unread = false;         // likewise
};

}  // namespace gdrx::tcp
