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

void expect_needed(std::span<const Named> scenarios, std::span<const std::string_view> sources,
                   std::span<const std::string_view> stronger) {
  constexpr Limits kToSeeAll{.preemptions = 1, .stale = 1};
  std::map<std::string, std::memory_order> sites;
  for (const Named& named : scenarios) {
    const Outcome outcome = explore(named.scenario, kToSeeAll);
    for (const Site& site : outcome.sites) sites.emplace(site.where, site.order);
  }
  for (const std::string_view source : sources) {
    int weakened = 0;
    for (const auto& [where, order] : sites) {
      if (!where.starts_with(source)) continue;
      for (const std::memory_order less : weaker(where.substr(where.rfind(' ') + 1), order)) {
        const Weakened change{where, less};
        const auto fails = [&](const Named& named) {
          return !explore(named.scenario, named.limits, &change).wrong.empty();
        };
        ++weakened;
        const bool is_known = std::any_of(stronger.begin(), stronger.end(), [&](const auto& known) {
          const std::size_t space = known.find(' ');
          return where.starts_with(known.substr(0, space)) && where.ends_with(known.substr(space));
        });
        EXPECT_NE(std::any_of(scenarios.begin(), scenarios.end(), fails), is_known)
            << where << ": " << to_string(less) << " in place of " << to_string(order)
            << (is_known ? " is wrong, too" : ": nothing is wrong");
      }
    }
    EXPECT_GT(weakened, 0) << source << " has none of the model's atomics";
  }
}

}  // namespace gdrx::model
