// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace gdrx::tools {
namespace {

TEST(Runs, OfTheRoutesMeasureHostMemoryOverEachTransportAndGpusByTheirKernels) {
  const std::array<std::string, 2> transports{"shm", "tcp"};
  std::size_t of_host = 0;
  std::size_t of_gpus = 0;
  for (const RouteRow& row : kRoutes) {
    for (const Words& words : runs_of(row.route, transports)) {
      const bool cuda = std::find(words.begin(), words.end(), "cuda") != words.end();
      EXPECT_EQ(cuda, is_of_gpus(row.route)) << row.name;
      ++(cuda ? of_gpus : of_host);
      if (!cuda) {
        EXPECT_EQ(words[1], transports[of_host - 1]);
      }
    }
  }
  EXPECT_EQ(of_host, 2U);
  EXPECT_EQ(of_gpus, 2U);
}

}  // namespace
}  // namespace gdrx::tools
