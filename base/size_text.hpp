// SPDX-License-Identifier: Apache-2.0
// Sizes as people write them and read them: binary, whatever the letter.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gdrx/types.hpp"

namespace gdrx {

/// "0", "4096", "64K", "64k", "1MiB", "2G", "8B": at most 1 PiB. Nothing: it is no such size.
std::optional<Bytes> read_size(std::string_view text) noexcept;

/// "64 KiB", "4 GiB", "100 bytes"; of what is no round number the first digit behind the point.
std::string size_text(Bytes bytes);

}  // namespace gdrx
