// SPDX-License-Identifier: Apache-2.0
// Sizes and durations as people write them.
#pragma once

#include <string>
#include <string_view>

#include "gdrx/result.hpp"
#include "gdrx/types.hpp"

namespace gdrx::tools {

/// "8", "64K", "1M", "2G", also "64KiB": binary, at most 1 PiB. `option` stands in the error.
Result<Bytes> parse_size(std::string_view option, std::string_view text);

/// "2us", "300ns", "1.5ms", "1s"; a bare number is microseconds. Microseconds, 0 or more.
Result<double> parse_us(std::string_view option, std::string_view text);

/// A number over 0, such as a bandwidth.
Result<double> parse_positive(std::string_view option, std::string_view text);

}  // namespace gdrx::tools
