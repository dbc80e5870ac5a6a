// SPDX-License-Identifier: Apache-2.0
// A rank's connection to the root of its unique id.
#pragma once

#include <memory>

#include "gdrx/bootstrap.hpp"
#include "gdrx/log.hpp"
#include "transport/bootstrap/frame.hpp"
#include "transport/bootstrap/unique_id.hpp"

namespace gdrx {

/// The all-gather is a star, two hops deep.
class TcpBootstrap final : public Bootstrap {
 public:
  /// Ends by the deadline. Errc::invalid_argument for an id that is none, Errc::protocol with the
  /// root's reason if it refuses this rank.
  static Result<std::unique_ptr<Bootstrap>> create(const UniqueId& id, Rank rank, int size,
                                                   const Log& log, Deadline deadline);
  Rank rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine, Deadline deadline) override;

 private:
  TcpBootstrap(Socket root, Rank rank, int size)
      : root_(std::move(root)), rank_(rank), size_(size) {}
  Result<Frame> receive(Deadline deadline);

  Socket root_;
  FrameReader reader_;
  Rank rank_;
  int size_;
};

}  // namespace gdrx
