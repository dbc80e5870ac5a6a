// SPDX-License-Identifier: Apache-2.0
// GDRX_MPI and GDRX_MPI_TABLE, so that they are known and checked. mpi/settings.cpp and
// mpi/table.cpp act on them, without this library.
#include "config_mpi.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace gdrx {
namespace {

Result<void> parse_mpi(Config& config, std::string_view text) {
  constexpr std::array<std::string_view, 4> kWords{"off", "auto", "all", "explain"};
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (std::find(kWords.begin(), kWords.end(), word) == kWords.end()) {
      return fail(Errc::invalid_argument,
                  "off, auto, all and explain are expected, joined by commas");
    }
  }
  config.mpi = std::string(text);
  return {};
}

}  // namespace

Variable mpi_variable() {
  return {"GDRX_MPI", "",
          "which collectives an MPI program gets from gdrx: off, auto (where it is faster), all; "
          "explain: a table at the end",
          parse_mpi, [](const Config& c) { return c.mpi; }};
}

Variable mpi_table_variable() {
  return {"GDRX_MPI_TABLE", "",
          "table of `gdrx tune --mpi` by which GDRX_MPI=auto takes calls; empty: gdrx's own",
          [](Config&, std::string_view) -> Result<void> { return {}; },
          [](const Config&) {  // nothing here has a use for it
            const char* const name = secure_getenv("GDRX_MPI_TABLE");
            return std::string(name == nullptr ? "" : name);
          }};
}

}  // namespace gdrx
