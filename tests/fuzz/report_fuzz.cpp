// SPDX-License-Identifier: Apache-2.0
// libFuzzer: any text is a report of gdrx doctor or one line of error. Reports come from files and
// from other hosts: whatever one holds, it is shown without moving a terminal's cursor, compared,
// and never becomes a command of the script of fixes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tools/cluster/compare.hpp"
#include "tools/doctor/doctor_view.hpp"

namespace {

void printable_or_abort(const std::string& text) {
  const bool obeyed = std::any_of(text.begin(), text.end(), [](char c) {
    return c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
  });
  if (obeyed) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gdrx::tools;
  const auto report = parse_doctor_json({reinterpret_cast<const char*>(data), size});
  if (!report) {
    if (describe(report.error()).find('\n') != std::string::npos) std::abort();
    return 0;
  }
  printable_or_abort(doctor_text(*report, {}));
  printable_or_abort(
      comparison_text(compare({{"a", *report, {}}, {"b", {}, {}}, {"c", *report, {}}})));
  for (const std::string& line : doctor_worse(*report, {})) printable_or_abort(line);
  for (const std::string& line : doctor_worse({}, *report)) printable_or_abort(line);
  if (!doctor_worse(*report, *report).empty()) std::abort();  // nobody is worse than himself
  if (doctor_html(*report).find("<script") != std::string::npos) std::abort();
  const auto again = parse_doctor_json(doctor_json(*report));
  if (!again || again->findings.size() != report->findings.size()) std::abort();
  return 0;
}
