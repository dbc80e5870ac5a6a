// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tuning table: an error of one line, or a table that comes back the same and whose
// times are times.
#include <cstdio>
#include <cstdlib>

#include "collectives/tune/tune_table.hpp"

namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "tune_fuzz: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace tune = gdrx::tune;
  const auto read = tune::from_json({reinterpret_cast<const char*>(data), size});
  if (!read) {
    must(read.error().what.find('\n') == std::string::npos, "an error of several lines");
    return 0;
  }
  const auto again = tune::from_json(tune::to_json(*read));
  must(again && *again == *read, "a table that does not come back as it was");
  for (const tune::Curve& curve : read->curves) {
    const auto us =
        tune::time_of(curve.points, (curve.points.front().bytes + curve.points.back().bytes) / 2);
    must(us && *us > 0 && *us <= 1e9, "a time that is none");
  }
  return 0;
}
