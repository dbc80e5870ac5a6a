// SPDX-License-Identifier: Apache-2.0
// The root of a unique id: one thread that lets the right ranks in and is the middle of their star.
#pragma once

#include <memory>

#include "gdrx/log.hpp"
#include "gdrx/result.hpp"
#include "transport/bootstrap/secret.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx {

/// Serves until every rank has gone again, or until it is destroyed; its destructor hands out what
/// is still to be handed out, for a second at most. Strangers, garbage, other
/// versions, doubled ranks and disagreeing sizes are refused with a reason and stall nobody.
class BootstrapRoot {
 public:
  static Result<std::unique_ptr<BootstrapRoot>> start(const SocketAddress& at, const Log& log,
                                                      const Secret& secret = {},
                                                      PortRange ports = {});
  ~BootstrapRoot();
  BootstrapRoot(const BootstrapRoot&) = delete;
  BootstrapRoot& operator=(const BootstrapRoot&) = delete;
  const UniqueId& id() const noexcept;
  bool finished() const noexcept;

 private:
  class Impl;
  explicit BootstrapRoot(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gdrx
