// SPDX-License-Identifier: Apache-2.0
// Two devices of a fabric in one process, one connected to the other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "gdrx/transport.hpp"

namespace gdrx::test {

inline std::shared_ptr<Device> open_device(std::string_view fabric, Rank rank,
                                           const Config& config) {
  auto opened = open_fabric(fabric, config, Log());
  if (!opened) throw std::runtime_error(opened.error().what);
  return (*opened)->open_device(rank, config, Log()).value();
}

class DevicePair {
 public:
  static constexpr std::size_t kBytes = 4 << 20;
  static constexpr std::byte kCanary{0x5C};

  DevicePair(std::string_view fabric, const Config& config)
      : DevicePair(open_device(fabric, Rank{0}, config), open_device(fabric, Rank{1}, config)) {}
  DevicePair(std::shared_ptr<Device> rank0, std::shared_ptr<Device> rank1)
      : sender(std::move(rank0)),
        receiver(std::move(rank1)),
        region(receiver->allocate_memory(kBytes).value()),
        endpoint(sender->connect(Rank{1}, receiver->address()).value()) {
    std::fill(region->bytes().begin(), region->bytes().end(), kCanary);
  }

  RemoteRegionId import() { return import(region->export_key()); }
  RemoteRegionId import(const Blob& key) { return endpoint->import_region(key).value(); }

  /// Drives both until the receiver has a completion or an error; nothing after `limit`.
  std::optional<Result<Completion>> receive(Duration limit = std::chrono::seconds(5)) {
    const Deadline deadline = Deadline::after(steady_clock(), limit);
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

  bool untouched() const {
    return std::all_of(region->bytes().begin(), region->bytes().end(),
                       [](std::byte b) { return b == kCanary; });
  }

  std::shared_ptr<Device> sender;
  std::shared_ptr<Device> receiver;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<Endpoint> endpoint;
};

/// A write of `payload` with an immediate.
inline WriteOp write_of(std::span<const std::byte> payload, RemoteRegionId remote, Bytes offset) {
  WriteOp op;
  op.payload = payload;
  op.remote = remote;
  op.offset = offset;
  op.has_immediate = true;
  op.immediate = 7;
  return op;
}

/// Other bytes each round.
inline Blob pattern(std::size_t length, int round) {
  Blob bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>(i * 7 + i / 251 + static_cast<std::size_t>(round));
  }
  return bytes;
}

/// Polls all until `done`, false after five seconds or at an error.
inline bool drive(std::initializer_list<Device*> devices, const std::function<bool()>& done) {
  const Deadline deadline = Deadline::after(steady_clock(), std::chrono::seconds(5));
  std::array<Completion, 16> some;
  while (!done()) {
    if (deadline.passed(steady_clock().now())) return false;
    for (Device* device : devices) {
      if (const auto polled = device->poll(some); !polled) {
        ADD_FAILURE() << polled.error().what;
        return false;
      }
    }
  }
  return true;
}

}  // namespace gdrx::test
