// SPDX-License-Identifier: Apache-2.0
#include "tests/memory_order/orders.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace gdrx::model {

void expect_right(std::span<const Named> scenarios) {
  for (const Named& named : scenarios) {
    const Outcome outcome = explore(named.scenario, named.limits);
    EXPECT_EQ(outcome.wrong, "") << named.name;
    EXPECT_TRUE(outcome.whole) << named.name << ": more than " << outcome.runs << " runs";
    EXPECT_GT(outcome.runs, 10u) << named.name;
    fmt::print("{}: {} runs\n", named.name, outcome.runs);
  }
}

void expect_needed(std::span<const Named> scenarios, std::span<const std::string_view> sources) {
  std::map<std::string, std::memory_order> sites;
  for (const Named& named : scenarios) {
    Limits one = named.limits;
    one.runs = 1000;
    for (const Site& site : explore(named.scenario, one).sites)
      sites.emplace(site.where, site.order);
  }
  int weakened = 0;
  for (const auto& [where, order] : sites) {
    const auto from = [&](std::string_view source) { return where.starts_with(source); };
    if (std::none_of(sources.begin(), sources.end(), from)) continue;
    for (const std::memory_order less : weaker(where.substr(where.rfind(' ') + 1), order)) {
      const Weakened change{where, less};
      const auto fails = [&](const Named& named) {
        return !explore(named.scenario, named.limits, &change).wrong.empty();
      };
      ++weakened;
      EXPECT_TRUE(std::any_of(scenarios.begin(), scenarios.end(), fails))
          << where << ": nothing is wrong with " << to_string(less) << " in place of "
          << to_string(order);
    }
  }
  EXPECT_GT(weakened, 2);
}

}  // namespace gdrx::model
