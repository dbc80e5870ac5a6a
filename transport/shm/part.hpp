// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/shm/segment.hpp"

namespace gdrx::shm {

/// Some bytes of a segment, which lives as long.
struct Part {
  std::shared_ptr<Segment> segment;
  std::span<std::byte> bytes;

  static Part whole(std::shared_ptr<Segment> segment) noexcept {
    const std::span<std::byte> all = segment->bytes();
    return {std::move(segment), all};
  }
  std::uint64_t offset() const noexcept {
    return static_cast<std::uint64_t>(bytes.data() - segment->bytes().data());
  }
};

}  // namespace gdrx::shm
