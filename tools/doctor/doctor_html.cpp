// SPDX-License-Identifier: Apache-2.0
// One page, with nothing to load and no script.
#include <fmt/format.h>

#include <array>

#include "tools/doctor/doctor_view.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

using doctor::Finding;
using doctor::Severity;

constexpr std::string_view kDoctorStyle =
    "body{font:15px/1.5 system-ui,sans-serif;color:#202124;background:#fff;margin:2em auto;"
    "max-width:1000px;padding:0 1em}h1{font-size:1.5em}table{border-collapse:collapse;width:100%}"
    "td,th{border-bottom:1px solid #dadce0;padding:6px 8px;text-align:left;vertical-align:top}"
    "td:nth-child(2){white-space:nowrap}"
    "pre{margin:.3em 0;padding:6px 8px;background:#f1f3f4;overflow-x:auto}"
    "b.s{display:inline-block;min-width:5.5em;text-align:center;border-radius:3px;padding:1px 6px}"
    ".e{color:#5f6368;font-size:13px;overflow-wrap:anywhere}";

std::string row(const Finding& one) {
  constexpr std::array kFills{"#dff3e0", "#e8eaed", "#fff4d1", "#fde3cf", "#f9d0cb"};
  std::string fix;
  for (const std::string& line : one.fix) fix += escaped(line) + "\n";
  return fmt::format(
      "<tr><td><b class=\"s\" style=\"background:{}\">{}</b></td><td><code>{}</code><br>{}</td>"
      "<td>{}<div class=\"e\">{}</div>{}</td></tr>\n",
      kFills[static_cast<std::size_t>(one.severity)], to_string(one.severity), escaped(one.id),
      escaped(one.subject), escaped(one.summary), escaped(one.evidence),
      fix.empty() ? "" : "<pre>" + fix + "</pre><code>" + escaped(doc_link(one)) + "</code>");
}

}  // namespace

std::string doctor_html(const doctor::Report& report) {
  std::string rows;
  for (const Severity severity :
       {Severity::fail, Severity::slow, Severity::warn, Severity::unknown, Severity::ok}) {
    for (const Finding& one : report.findings) {
      if (one.severity == severity) rows += row(one);
    }
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>gdrx doctor: {0}</title>\n"
      "<style>{1}</style></head><body>\n<h1>Does GPUDirect RDMA work here? {0}</h1>\n<p>{2}</p>\n"
      "<table><tr><th></th><th>check</th><th>finding</th></tr>\n{3}</table></body></html>\n",
      doctor_counts(report), kDoctorStyle, escaped(report.host), rows);
}

}  // namespace gdrx::tools
