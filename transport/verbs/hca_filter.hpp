// SPDX-License-Identifier: Apache-2.0
// Which NICs may be used: the grammar of GDRX_HCA, which is that of NCCL_IB_HCA. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::verbs {

/// "[^][=]name[:port[:rail[:plane]]][,...]": names are prefixes, exact after '=', excluded after
/// '^'.
class HcaFilter {
 public:
  static Result<HcaFilter> parse(std::string_view text);
  /// An empty filter takes everything.
  bool takes(std::string_view device, std::uint8_t port) const;
  /// What the user says of a port's cabling; -1 where he says nothing.
  struct Place {
    int rail = -1;
    int plane = -1;
  };
  Place place_of(std::string_view device, std::uint8_t port) const;

 private:
  struct Entry {
    std::string name;
    int port = 0;  // 0: all
    Place place;
  };
  const Entry* entry_of(std::string_view device, std::uint8_t port) const;
  bool exclude_ = false;
  bool exact_ = false;
  std::vector<Entry> entries_;
};

}  // namespace gdrx::verbs
