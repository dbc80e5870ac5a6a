// SPDX-License-Identifier: Apache-2.0
// Any bytes as a plan in JSON: an error of one line, or a plan that is proven, comes back the same
// through JSON, and can be shown and simulated.
#include <cstdio>
#include <cstdlib>

#include "gdrx/plan_simulate.hpp"
#include "gdrx/plan_text.hpp"

namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "plan_json_fuzz: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace plan = gdrx::plan;
  plan::JsonLimits limits;  // small: a proof's time grows with them, and mistakes do not need size
  limits.ranks = 16;
  limits.ops = 4096;
  const auto read = plan::from_json({reinterpret_cast<const char*>(data), size}, limits);
  if (!read) {
    must(read.error().what.find('\n') == std::string::npos, "an error of several lines");
    return 0;
  }
  const auto again = plan::from_json(plan::to_json(*read), limits);
  must(again && again->spec == read->spec && again->shape == read->shape &&
           again->ranks == read->ranks,
       "a plan that does not come back as it was");
  must(!plan::to_text(*read).empty() && !plan::to_dot(*read).empty(), "a plan without words");
  plan::Costs costs;
  costs.alpha_us = 1;
  costs.beta_us = 1e-3;
  costs.gamma_us = 1e-4;
  must(plan::simulate(*read, 4096, costs).has_value(), "a proven plan that cannot be simulated");
  return 0;
}
