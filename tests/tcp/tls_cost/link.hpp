// SPDX-License-Identifier: Apache-2.0
// One end of a connection that messages go over, by gdrx's tcp fabric or by system calls and
// OpenSSL's cipher alone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace gdrx::tls_cost {

/// A failure ends the process.
void require(bool good, const char* what);

/// What the other process says over `channel`, a SOCK_SEQPACKET, after it was told `mine`.
std::string tell_and_hear(int channel, const std::string& mine);

class Link {
 public:
  virtual ~Link() = default;
  /// Of all messages until the next call, in bytes: what goes out, and what comes in.
  virtual void set_sizes(std::size_t out, std::size_t in) = 0;
  /// The next one from `at` of this end's memory to the same place of the peer's. False: try again.
  virtual bool send(std::size_t at) = 0;
  /// How many have come since the last call. Sends what did not go at once.
  virtual std::size_t poll() = 0;
  /// Whether anything sent has not left yet.
  virtual bool busy() const = 0;
};

/// `area`: bytes of memory at each end. Both processes, at the same time.
std::unique_ptr<Link> fabric_link(int rank, bool plain, std::size_t area, int channel);
/// The bytes of the fabric's messages and records, in as few calls.
std::unique_ptr<Link> bare_link(int rank, bool plain, std::size_t area, int channel);

}  // namespace gdrx::tls_cost
