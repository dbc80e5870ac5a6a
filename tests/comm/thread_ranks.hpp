// SPDX-License-Identifier: Apache-2.0
// Ranks of one communicator, each a thread of the test.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/comm/communicator.hpp"
#include "transport/bootstrap/thread_bootstrap.hpp"

namespace gdrx {

class ThreadRanks : public testing::Test {
 protected:
  using Paths = std::function<std::unique_ptr<gpu::Path>(int rank)>;

  /// `paths`: to GPUs that are made up; else none. `change`: the configuration of every rank.
  void make(int ranks, const Paths& paths = {}, const std::function<void(Config&)>& change = {}) {
    auto bootstraps = ThreadBootstrap::create_all(ranks);
    comms_.resize(static_cast<std::size_t>(ranks));
    for_each([&](std::size_t rank) {
      auto loaded = load_config(process_environment());
      ASSERT_TRUE(loaded);
      Communicator::Options options;
      options.config = std::move(loaded->config);
      options.config.timeout = std::chrono::seconds(20);
      if (change) change(options.config);
      auto made = Communicator::create(*bootstraps[rank], std::move(options),
                                       paths ? paths(static_cast<int>(rank)) : nullptr);
      ASSERT_TRUE(made) << made.error().what;
      comms_[rank] = std::move(*made);
    });
  }
  void for_each(const std::function<void(std::size_t)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      threads.emplace_back([&body, rank] { body(rank); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::unique_ptr<Communicator>> comms_;
};

}  // namespace gdrx
