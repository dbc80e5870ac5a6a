// SPDX-License-Identifier: Apache-2.0
// Lists of ranks as text for a person.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gdrx {

/// "rank 3" or "ranks 3, 5 and 11 more". Ascending order is the caller's.
std::string name_ranks(const std::vector<std::int32_t>& ranks);
/// "rank 3 of 8 has not come", "ranks 3, 5 of 8 have not come".
std::string name_missing(const std::vector<std::int32_t>& ranks, int size);

}  // namespace gdrx
