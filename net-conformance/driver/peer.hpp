// SPDX-License-Identifier: Apache-2.0
// A second process with a plugin of its own: forked here, or on another host that serves them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <utility>

#include "gdrx/result.hpp"
#include "net-conformance/driver/channel.hpp"
#include "net-conformance/driver/session.hpp"

namespace gdrx::conformance {

/// Forked before the plugin is loaded here, or made by Options::peer's server; killed at the end.
class Peer {
 public:
  using Part = std::function<Result<void>(Session&, Channel&)>;

  static Result<Peer> start(const Session& session, const Part& part);
  Peer(Peer&& other) noexcept
      : pid_(other.pid_),
        control_(std::exchange(other.control_, std::nullopt)),
        channel_(std::move(other.channel_)) {
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
  static Result<Peer> start_there(const Session& session);
  pid_t pid_;                       // -1: on another host, or gone
  std::optional<Channel> control_;  // its end kills the process there
  Channel channel_;
};

/// Runs second processes for a suite on another host, until none was asked for in `idle`.
/// `check` runs a rule up to its Peer::start(), which is where it becomes the second process.
Result<void> serve_peers(int port, Duration idle, const Options& options,
                         const std::function<void(const char* rule, Session&)>& check);

}  // namespace gdrx::conformance
