// SPDX-License-Identifier: Apache-2.0
// A second process with a plugin of its own.
#pragma once

#include <sys/types.h>

#include <functional>
#include <utility>

#include "gdrx/result.hpp"
#include "tests/conformance/net/driver/channel.hpp"
#include "tests/conformance/net/driver/session.hpp"

namespace gdrx::conformance {

/// Forked before the plugin is loaded here; killed at the end.
class Peer {
 public:
  using Part = std::function<Result<void>(Session&, Channel&)>;

  static Result<Peer> start(const Session& session, const Part& part);
  Peer(Peer&& other) noexcept : pid_(other.pid_), channel_(std::move(other.channel_)) {
    other.pid_ = -1;
  }
  Peer& operator=(Peer&&) = delete;
  ~Peer() { kill(); }

  Channel& channel() noexcept { return channel_; }
  /// SIGKILL, and its end awaited.
  void kill() noexcept;
  /// What its part came to, once it has ended by itself.
  Result<void> result(Duration limit);

 private:
  Peer(pid_t pid, Channel channel) : pid_(pid), channel_(std::move(channel)) {}
  pid_t pid_;
  Channel channel_;
};

}  // namespace gdrx::conformance
