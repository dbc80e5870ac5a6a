// SPDX-License-Identifier: Apache-2.0
// listen() and accept(): takes connections, lets in who holds the handle's key, answers with an
// receive ring. Never waits, and somebody who connects and says nothing holds nobody up.
#pragma once

#include <memory>
#include <vector>

#include "gdrx/log_limit.hpp"
#include "plugin/core/greeting.hpp"
#include "plugin/core/receiver.hpp"
#include "transport/bootstrap/strangers.hpp"

namespace gdrx::net {

class Listener {
 public:
  static Result<std::unique_ptr<Listener>> open(std::shared_ptr<DeviceContext> device_context,
                                                const SocketAddress& address);
  const Handle& handle() const noexcept { return handle_; }
  const std::shared_ptr<DeviceContext>& device_context() const noexcept { return device_context_; }
  /// Null: call again.
  Result<std::unique_ptr<Receiver>> accept();

 private:
  struct PendingPeer {
    explicit PendingPeer(SecureSocket socket) : greeting(std::move(socket)) {}
    // Who holds the key is no stranger.
    Instant silent_since() const { return greeting.trusted() ? Instant::max() : silence.since(); }
    Greeting greeting;
    Silence silence;
    std::unique_ptr<Receiver> receiver;  // once the greeting is read
    bool refused = false;
  };
  explicit Listener(std::shared_ptr<DeviceContext> device_context)
      : device_context_(std::move(device_context)) {}
  std::unique_ptr<Receiver> serve_all();
  void let_in();
  Result<Progress> serve(PendingPeer& pending);
  /// Null: another peer's device context has that one's rank.
  Result<std::unique_ptr<Receiver>> greet(const Frame& frame, std::string peer_name);

  std::shared_ptr<DeviceContext> device_context_;
  Socket socket_;
  Handle handle_;
  Key key_;
  std::vector<std::unique_ptr<PendingPeer>> pending_;
  Admission admission_;
  LogLimit refused_{4};  // strangers may come as often as they like
};

}  // namespace gdrx::net
