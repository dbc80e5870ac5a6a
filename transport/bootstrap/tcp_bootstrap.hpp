// SPDX-License-Identifier: Apache-2.0
// A rank's connection to the root of its unique id.
#pragma once

#include <memory>
#include <string>

#include "gdrx/bootstrap.hpp"
#include "gdrx/log.hpp"
#include "transport/bootstrap/frame.hpp"
#include "transport/bootstrap/secret.hpp"
#include "transport/bootstrap/secure_socket.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx {

/// The all-gather is a star, two hops deep. A blob has kMostGatheredBlob bytes (1 MiB) at most, all
/// of a round together kMaxFrame (64 MiB): more is Errc::invalid_argument.
class TcpBootstrap final : public Bootstrap {
 public:
  /// Ends by the deadline. Errc::invalid_argument for an id or a rank that is none, Errc::protocol
  /// with the root's reason if it refuses this rank.
  static Result<std::unique_ptr<Bootstrap>> create(const UniqueId& id, Rank rank, int size,
                                                   const Log& log, Deadline deadline,
                                                   const Secret& secret = {});
  Rank rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  /// Errc::timeout names the ranks that have not come, Errc::peer_lost one that has gone again. A
  /// failed one is final.
  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine, Deadline deadline) override;

 private:
  TcpBootstrap(SecureSocket root, const SocketAddress& address, Rank rank, int size);
  static Result<SecureSocket> connect_here(const UniqueId& id, const Key& key, Deadline deadline);
  static Result<SecureSocket> connect(const UniqueId& id, const Key& key, bool on_host,
                                      Deadline deadline);
  Result<void> say_hello(const UniqueId& id, Deadline deadline);
  Result<Frame> receive(Deadline deadline);
  Result<void> check(const Frame& frame) const;
  tl::unexpected<Error> late(const std::string& missing) const;

  SecureSocket root_;
  SocketAddress address_;
  FrameReader reader_;
  Rank rank_;
  int size_;
};

}  // namespace gdrx
