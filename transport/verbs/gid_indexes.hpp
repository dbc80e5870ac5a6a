// SPDX-License-Identifier: Apache-2.0
// Which entry of whose GID table the user wants: the grammar of GDRX_GID_INDEX. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::verbs {

/// "[name[:port]=]index,...": of that device, exactly, and port; without a name of all others. The
/// first of those that say it alike.
class GidIndexes {
 public:
  static Result<GidIndexes> parse(std::string_view text);
  /// Nothing: the index is chosen.
  std::optional<std::uint32_t> of(std::string_view device, std::uint8_t port) const;

 private:
  struct Entry {
    std::string device;  // empty: all
    int port = 0;        // 0: all
    std::uint32_t index = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace gdrx::verbs
