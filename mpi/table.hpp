// SPDX-License-Identifier: Apache-2.0
// At which sizes auto takes a collective: by the table of `gdrx tune --mpi` that GDRX_MPI_TABLE
// names, or by one that came with gdrx.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/call.hpp"

namespace gdrx::mpi {

/// Bytes of whole calls, both ends with it.
struct Range {
  std::size_t least;
  std::size_t most;
};

/// Of communicators of that many ranks.
struct Choice {
  int ranks;
  std::array<std::vector<Range>, kKinds> of;

  bool has(Kind kind) const noexcept { return !of[static_cast<std::size_t>(kind)].empty(); }
  bool takes(Kind kind, std::size_t bytes) const noexcept {
    const auto& ranges = of[static_cast<std::size_t>(kind)];
    return std::any_of(ranges.begin(), ranges.end(), [bytes](const Range& range) {
      return bytes >= range.least && bytes <= range.most;
    });
  }
};

/// Lines of ranks, collective, least and most bytes (`-`: no end); # begins a remark. Not empty:
/// what is wrong with them.
std::string read_table(std::string_view text, std::vector<Choice>& table);

/// The table of GDRX_MPI_TABLE, if it is set. False: a line on stderr has said what is wrong.
bool load_table();
/// The same on every rank whose table is.
int number_of_table() noexcept;
/// Of this host, until the ranks have said how many the smallest of theirs has: they must decide
/// alike.
int processors() noexcept;
void set_processors(int count) noexcept;
/// The one of the most ranks that are not more than these.
const Choice& choice_for(int ranks) noexcept;

}  // namespace gdrx::mpi
