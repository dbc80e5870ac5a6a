// SPDX-License-Identifier: Apache-2.0
// GDRX_MPI, so that it is known and checked. mpi/settings.cpp acts on it, without this library.
#include "config_mpi.hpp"

#include <algorithm>
#include <array>

namespace gdrx {
namespace {

Result<void> parse(Config& config, std::string_view text) {
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

Knob mpi_knob() {
  return {"GDRX_MPI", "",
          "which collectives an MPI program gets from gdrx: off, auto (where it is faster), all; "
          "explain: a table at the end",
          parse, [](const Config& c) { return c.mpi; }};
}

}  // namespace gdrx
