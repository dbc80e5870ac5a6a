// SPDX-License-Identifier: Apache-2.0
// All ranks of a communicator as threads of the test, through the public C API alone.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gdrx/gdrx.h"

namespace gdrx::test {

/// Owns the communicators of `ranks` threads.
class World {
 public:
  explicit World(int ranks, gdrxConfig_t config = GDRX_CONFIG_INITIALIZER)
      : comms_(static_cast<std::size_t>(ranks)) {
    const gdrxResult_t made = gdrxCommInitAll(comms_.data(), ranks, &config);
    if (made != gdrxSuccess) ADD_FAILURE() << gdrxGetLastError(nullptr);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  /// Destroyed by one thread each, as their owners would.
  ~World() {
    std::vector<std::jthread> threads;
    for (gdrxComm_t comm : comms_) threads.emplace_back([comm] { gdrxCommDestroy(comm); });
  }

  int size() const { return static_cast<int>(comms_.size()); }
  gdrxComm_t operator[](int rank) const { return comms_[static_cast<std::size_t>(rank)]; }

  /// Runs `body(rank, comm)` on every rank at once.
  void run(const std::function<void(int, gdrxComm_t)>& body) const {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] { body(rank, (*this)[rank]); });
    }
  }

 private:
  std::vector<gdrxComm_t> comms_;
};

inline gdrxConfig_t with(const char* algorithm, const char* transport = nullptr) {
  gdrxConfig_t config = GDRX_CONFIG_INITIALIZER;
  config.algorithm = algorithm;
  config.transport = transport;
  return config;
}

/// Element i of `rank`: small integers, so that sums are exact in every order.
inline float value_of(int rank, std::size_t i) {
  return static_cast<float>((static_cast<std::size_t>(rank) * 7 + i * 13) % 31) - 15.0F;
}

}  // namespace gdrx::test
