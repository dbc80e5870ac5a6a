// SPDX-License-Identifier: Apache-2.0
// What a peer, a file or an argument said, as text for a person: no command of a terminal, one
// line.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gdrx {

/// What a terminal would obey becomes `instead`: control characters, in UTF-8 those of two bytes,
/// too.
std::string printable(std::string_view text, char instead = ' ');
std::string printable(std::span<const std::byte> bytes);

/// The same, and whatever is not ASCII: each byte a '?'.
std::string printable_ascii(std::string_view text);

}  // namespace gdrx
