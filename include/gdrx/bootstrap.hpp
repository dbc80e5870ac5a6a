// SPDX-License-Identifier: Apache-2.0
// Out-of-band exchange between ranks, used while a communicator is made. MPI, TCP (a unique id) and
// in-process threads implement it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gdrx/clock.hpp"
#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx {

using Blob = std::vector<std::byte>;

/// One thread at a time. Every rank makes the same calls in the same order.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;
  virtual Rank rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Every rank's blob (lengths may differ), indexed by rank. Errc::timeout names the missing ranks
  /// where the implementation can know them. std::bad_alloc leaves only where the others may have
  /// this rank's blob, and go on.
  virtual Result<std::vector<Blob>> all_gather(std::span<const std::byte> mine,
                                               Deadline deadline) = 0;
  /// Nothing more is gathered, on any rank: what fails from here on the others hear elsewhere, or
  /// find themselves.
  virtual void end() noexcept {}
};

}  // namespace gdrx
