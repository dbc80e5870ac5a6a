// SPDX-License-Identifier: Apache-2.0
// Two devices of the ucx fabric in one process, one connected to the other.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <optional>

#include "gdrx/transport.hpp"

namespace gdrx::test {

class Pair {
 public:
  static constexpr std::size_t kBytes = 4 << 20;
  static constexpr std::byte kCanary{0x5C};

  explicit Pair(const std::string& tls = {}) {
    Config config;
    config.ucx_tls = tls;
    config.ucx_tcp = tls == "tcp";
    auto fabric = open_fabric("ucx", config, Log());
    if (!fabric) throw std::runtime_error(fabric.error().what);
    sender = (*fabric)->open_device(Rank{0}, config, Log()).value();
    receiver = (*fabric)->open_device(Rank{1}, config, Log()).value();
    region = receiver->allocate_memory(kBytes).value();
    std::fill(region->bytes().begin(), region->bytes().end(), kCanary);
    endpoint = sender->connect(Rank{1}, receiver->address()).value();
  }

  RemoteRegionId import(const Blob& key) { return endpoint->import_region(key).value(); }

  /// Drives both until the receiver has a completion or an error; nothing after five seconds.
  std::optional<Result<Completion>> receive() {
    const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(5));
    std::array<Completion, 1> one;
    while (!deadline.passed(steady_clock().now())) {
      std::array<Completion, 8> own;
      if (const auto polled = sender->poll(own); !polled) return tl::unexpected(polled.error());
      const auto polled = receiver->poll(one);
      if (!polled) return tl::unexpected(polled.error());
      if (*polled == 1) return Result<Completion>(one[0]);
    }
    return std::nullopt;
  }

  std::shared_ptr<Device> sender;
  std::shared_ptr<Device> receiver;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<Endpoint> endpoint;
};

/// A write of `length` bytes of `fill` with an immediate.
inline WriteOp write_of(std::span<const std::byte> payload, RemoteRegionId remote, Bytes offset) {
  WriteOp op;
  op.payload = payload;
  op.remote = remote;
  op.offset = offset;
  op.has_immediate = true;
  op.immediate = 7;
  return op;
}

}  // namespace gdrx::test
