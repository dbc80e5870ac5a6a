// SPDX-License-Identifier: Apache-2.0
// One connect() under way: a state machine that never waits. NCCL calls again until it is done.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "plugin/core/greeting.hpp"
#include "plugin/core/sender.hpp"

namespace gdrx::net {

class Connector {
 public:
  static Result<std::unique_ptr<Connector>> begin(std::shared_ptr<DeviceContext> device_context,
                                                  const Handle& to);
  /// Null: call again.
  Result<std::unique_ptr<Sender>> step();
  const std::shared_ptr<DeviceContext>& device_context() const noexcept { return device_context_; }
  /// Why step() has failed: one of the two device contexts knows a third under the other's rank.
  /// Another device context has another.
  bool needs_another_device_context() const noexcept { return needs_another_device_context_; }
  /// Of what belongs to the device context.
  void let_go() noexcept { sender_.reset(); }

 private:
  enum class Stage : std::uint8_t { connecting, greeting, waiting, wiring };
  Connector(std::shared_ptr<DeviceContext> device_context, const SocketAddress& to, Key key,
            SecureSocket socket);
  Result<std::unique_ptr<Sender>> advance();
  bool may_come_again(const Error& error) const;
  Result<void> come_again();
  Result<void> push();
  Result<void> greet();
  Result<void> attach(const Frame& answer);
  Result<void> ask_for_another_device_context();

  std::shared_ptr<DeviceContext> device_context_;
  SocketAddress to_;
  Key key_;
  std::optional<Greeting> greeting_;
  Deadline deadline_;
  Stage stage_ = Stage::connecting;
  bool refused_ = false;  // with a reason
  bool needs_another_device_context_ = false;
  Instant next_try_{};  // once the last connection has ended
  std::unique_ptr<Sender> sender_;
};

/// The handle that NCCL carried here. Errc::protocol for what is not ours.
Result<Handle> decode_handle(std::span<const std::byte> bytes);

}  // namespace gdrx::net
