// SPDX-License-Identifier: Apache-2.0
#include "config_algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "gdrx/plan.hpp"

namespace gdrx {
namespace {

std::vector<std::string_view> choices() {
  std::vector<std::string_view> all{"auto"};
  all.insert(all.end(), plan::kAlgorithmNames.begin(), plan::kAlgorithmNames.end());
  all.emplace_back("direct");
  return all;
}

Result<void> parse_algorithm(Config& config, std::string_view text) {
  const auto all = choices();
  if (std::find(all.begin(), all.end(), text) == all.end()) {
    return fail(Errc::invalid_argument, fmt::format("one of {} is expected", fmt::join(all, ", ")));
  }
  config.algo = std::string(text);
  return {};
}

}  // namespace

Variable algorithm_variable() {
  static const std::string help = fmt::format(
      "algorithm of the collectives that have it: auto, {}; direct: of GPU buffers that are "
      "registered; "
      "all others as by auto",
      fmt::join(plan::kAlgorithmNames, ", "));
  return {"GDRX_ALGO", "", help, parse_algorithm, [](const Config& c) { return c.algo; }};
}

}  // namespace gdrx
