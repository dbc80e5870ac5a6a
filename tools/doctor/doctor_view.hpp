// SPDX-License-Identifier: Apache-2.0
// A doctor's report in words, for programs, as a page and as a script. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "gdrx/doctor.hpp"

namespace gdrx::tools {

struct DoctorStyle {
  bool colour = false;
  std::size_t columns = 80;
};
/// Worst first; lines no wider than the columns, but for commands.
std::string doctor_text(const doctor::Report& report, const DoctorStyle& style);
std::string doctor_json(const doctor::Report& report);
std::string doctor_html(const doctor::Report& report);
/// A shell script of the fixes, which does nothing unless called with --apply.
std::string doctor_script(const doctor::Report& report, bool for_other_host = false);

/// "1 FAIL, 2 WARN, 30 OK"
std::string doctor_counts(const doctor::Report& report);
/// Ids of the findings of a severity, each once: "memlock, shm".
std::string doctor_ids(const doctor::Report& report, doctor::Severity severity);

/// From doctor_json's text. Errors: one line about what is wrong with it.
Result<doctor::Report> parse_doctor_json(std::string_view text);
/// What is worse now than in a saved report: a line each, none if all is as good or better.
std::vector<std::string> doctor_worse(const doctor::Report& saved, const doctor::Report& now);

}  // namespace gdrx::tools
