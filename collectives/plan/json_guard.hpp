// SPDX-License-Identifier: Apache-2.0
// JSON of a stranger: depth, masses and doubled keys are refused while the text is being read.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace gdrx::plan {

/// Text of a stranger, fit to stand in one line of ours.
std::string shown(std::string_view text);

struct GuardLimits {
  std::size_t events = 0;  // keys, values, begins and ends
  int depth = 0;
};

struct Refused {
  std::string where;  // "byte 12"
  std::string why;
};

/// The library reports by exceptions; they end here.
tl::expected<nlohmann::json, Refused> parse_guarded(std::string_view text,
                                                    const GuardLimits& limits);

}  // namespace gdrx::plan
