// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <set>

#include "base/printable.hpp"
#include "tools/doctor/doctor_view.hpp"

namespace gdrx::tools {
namespace {

using doctor::Finding;
using doctor::Severity;

// A comment of a shell script that holds what a file said: one line, whatever is in it.
std::string comment(std::string_view text) { return "# " + printable(text) + "\n"; }

// What is not to be run as it stands: "docker run ...", "<device>" have to be completed, and
// variables and limits are for the shell that starts the job, not for this one.
bool to_complete(std::string_view line) {
  return line.find("...") != line.npos || line.find('<') != line.npos ||
         line.find("COMMAND") != line.npos || line.starts_with("docker run") ||
         line.starts_with("export ") || line.starts_with("unset ") || line.starts_with("ulimit ") ||
         line.starts_with("systemctl edit");
}

}  // namespace

std::string doctor_script(const doctor::Report& report, bool for_other_host) {
  std::string text =
      "#!/bin/sh\n"
      "# Written by gdrx doctor, which never runs it. Read it, delete what you do not want, then\n"
      "# run it as root with --apply. Lines behind '#?' are for you to complete, or for\n"
      "# the shell that starts your job.\n" +
      comment("Of: " + report.host) +
      (for_other_host ? "# It is for another host than the one that wrote it.\n" : "") +
      "if [ \"${1:-}\" != --apply ]; then\n"
      "  echo \"read $0 first; it changes this host only with --apply\"; exit 0\nfi\nset -x\n";
  std::set<std::string> written;  // the same fix of several devices, once
  for (const Severity severity : {Severity::fail, Severity::slow, Severity::warn}) {
    for (const Finding& one : report.findings) {
      if (one.severity != severity || one.fix.empty()) continue;
      text += "\n" + comment(fmt::format("{} {} {}: {}", to_string(severity), one.id, one.subject,
                                         one.summary));
      text += comment("seen: " + one.evidence) + comment("see: " + doc_link(one));
      std::string fix;
      bool by_hand = false;  // a command over several lines is left to a person as a whole
      bool goes_on = false;
      for (const std::string& line : one.fix) {
        if (!goes_on) by_hand = to_complete(line);
        goes_on = line.ends_with('\\');
        fix += line.starts_with('#') ? comment(line.substr(line.starts_with("# ") ? 2 : 1))
               : by_hand             ? "#? " + line + "\n"
                                     : line + "\n";
      }
      text += written.insert(fix).second ? fix : comment("the same fix as above");
    }
  }
  if (written.empty()) text += "\n# There is nothing to do.\n";
  return text;
}

}  // namespace gdrx::tools
