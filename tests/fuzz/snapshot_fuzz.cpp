// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any bytes are a snapshot or one line of error, and a snapshot is judged.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "gdrx/snapshot.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto snapshot =
      gdrx::topo::parse_snapshot({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!snapshot) {
    if (describe(snapshot.error()).find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto report = gdrx::doctor::diagnose(gdrx::doctor::host_of(*snapshot));
  if (!report && describe(report.error()).find('\n') != std::string::npos) std::abort();
  return 0;
}
