// SPDX-License-Identifier: Apache-2.0
// Whether the ranks of a host can map each other's memory: containers with process namespaces of
// their own cannot, nor can other users.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "gdrx/bootstrap.hpp"
#include "transport/shm/segment.hpp"

namespace gdrx::shm {

class Probe {
 public:
  static constexpr std::size_t kWords = sizeof(ArenaTicket);

  static Result<Probe> create();
  /// kWords bytes, for the rank before this one, which tries it.
  static Blob words_of(const std::optional<Probe>& probe);
  /// Of `words`, kWords bytes: they were of no probe.
  static bool is_none(std::span<const std::byte> words) noexcept;
  /// Where each rank tries the next one's, and the last the first's, no two groups of ranks that do
  /// not reach each other stay unseen.
  static Result<void> attempt(std::span<const std::byte> words);

 private:
  explicit Probe(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {}
  std::shared_ptr<Segment> segment_;
};

}  // namespace gdrx::shm
