// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/transport/device_pair.hpp"
#include "transport/shm/fabric.hpp"

namespace gdrx::test {

inline std::shared_ptr<Device> open_shm(Rank rank, std::uint32_t ranks) {
  return shm::make_fabric(ranks)->open_device(rank, Config(), Log()).value();
}

/// `ranks`: with more than eight a bell tells of what is new.
class ShmPair : public DevicePair {
 public:
  explicit ShmPair(std::uint32_t ranks = 2)
      : DevicePair(open_shm(Rank{0}, ranks), open_shm(Rank{1}, ranks)) {}
};

}  // namespace gdrx::test
