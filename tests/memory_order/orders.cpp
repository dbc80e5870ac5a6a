// SPDX-License-Identifier: Apache-2.0
#include "tests/memory_order/orders.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <string>

namespace gdrx::model {
namespace {

// Those that are stronger than relaxed, and what is one on a GPU.
std::size_t orders_in(std::string_view source) {
  const std::regex order(
      "memory_order_(acquire|release|acq_rel|seq_cst)|"
      "\\b(fence_system|load_acquired|raise_in_block|read_in_block)\\(");
  std::ifstream file(fmt::format("{}/{}", GDRX_SOURCE_DIR, source));
  EXPECT_TRUE(file) << source;
  std::size_t orders = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string code = line.substr(0, line.find("//"));
    orders += static_cast<std::size_t>(std::distance(
        std::sregex_iterator(code.begin(), code.end(), order), std::sregex_iterator()));
  }
  return orders;
}

std::map<std::string, std::memory_order> sites_of(std::span<const Named> scenarios) {
  constexpr Limits kToSeeAll{.preemptions = 1, .stale = 1};
  std::map<std::string, std::memory_order> sites;
  for (const Named& named : scenarios) {
    const Outcome outcome = explore(named.scenario, kToSeeAll);
    for (const Site& site : outcome.sites) sites.emplace(site.where, site.order);
  }
  return sites;
}

}  // namespace

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
  const auto sites = sites_of(scenarios);
  for (const std::string_view source : sources) {
    const std::string_view name = source.substr(source.rfind('/') + 1);
    std::size_t found = 0;
    for (const auto& [where, order] : sites) {
      if (!where.starts_with(name) || where[name.size()] != ':') continue;
      const auto steps = weaker(where.substr(where.rfind(' ') + 1), order);
      found += steps.empty() ? 0 : 1;
      for (const std::memory_order less : steps) {
        const Weakened change{where, less};
        const auto fails = [&](const Named& named) {
          return !explore(named.scenario, named.limits, &change).wrong.empty();
        };
        const bool is_known = std::any_of(stronger.begin(), stronger.end(), [&](const auto& known) {
          const std::size_t space = known.find(' ');
          return where.starts_with(known.substr(0, space)) && where.ends_with(known.substr(space));
        });
        EXPECT_NE(std::any_of(scenarios.begin(), scenarios.end(), fails), is_known)
            << where << ": " << to_string(less) << " in place of " << to_string(order)
            << (is_known ? " is wrong, too" : ": nothing is wrong");
      }
    }
    EXPECT_EQ(found, orders_in(source)) << source << ": orders in scenarios, and in the source";
  }
}

}  // namespace gdrx::model
