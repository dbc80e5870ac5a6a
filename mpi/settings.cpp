// SPDX-License-Identifier: Apache-2.0
#include "mpi/settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "mpi/table.hpp"

namespace gdrx::mpi {
namespace {

Settings read(std::string_view text) {
  Settings found;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(word.size() < text.size() ? word.size() + 1 : text.size());
    if (word == "off") {
      found.off = true;
    } else if (word == "all") {
      found.all = true;
    } else if (word == "explain") {
      found.explain = true;
    } else if (word != "auto") {
      std::fprintf(stderr,
                   "gdrx: GDRX_MPI does not know '%.*s', so MPI keeps all collectives: it takes "
                   "off, auto, all and explain, joined by commas\n",
                   static_cast<int>(word.size()), word.data());
      found.off = true;
    }
  }
  return found;
}

}  // namespace

const Settings& settings() noexcept {
  static const Settings kSettings = [] {
    const char* const text = std::getenv("GDRX_MPI");
    Settings found = read(text == nullptr ? "" : text);
    found.off = found.off || !load_table();
    return found;
  }();
  return kSettings;
}

}  // namespace gdrx::mpi
