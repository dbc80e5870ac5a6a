// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/printable.hpp"
#include "tools/doctor/doctor_view.hpp"
#include "topo/read/field_text.hpp"

namespace gdrx::tools {
namespace {

using doctor::Finding;
using doctor::Report;
using doctor::Severity;

constexpr std::array kWorstFirst{Severity::fail, Severity::slow, Severity::warn, Severity::unknown,
                                 Severity::ok};
constexpr std::size_t kCheckIndent = 9;

// Words of `text` in lines; the first follows `first`, the others an indent as wide.
std::string wrapped_behind(const std::string& first, std::string_view text, std::size_t columns) {
  std::string all;
  std::string line = first;
  bool empty = true;
  const auto flush = [&] {
    all += line + "\n";
    line = std::string(first.size(), ' ');
    empty = true;
  };
  const std::string clean = printable(text);
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t end = std::min(clean.find(' ', at), clean.size());
    std::string word = clean.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!empty && line.size() + 1 + word.size() > columns) flush();
    const std::size_t room = std::max<std::size_t>(columns, line.size() + 8);
    while (line.size() + word.size() + (empty ? 0 : 1) > room) {  // a path longer than a line
      line += word.substr(0, room - line.size());
      word.erase(0, room - first.size());
      flush();
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  if (!empty) flush();
  return all;
}

std::string wrapped_comment(const std::string& first, std::string_view text, std::size_t columns) {
  std::istringstream lines(wrapped_behind("", text, columns - first.size() - 2));
  std::string all;
  std::string before = first;
  for (std::string line; std::getline(lines, line);) {
    all += before + "# " + line + "\n";
    before.assign(first.size(), ' ');
  }
  return all;
}

// A long command goes on over several lines as a shell takes them, so that it can be copied. It is
// never cut within quotes, nor where a comment follows it.
std::string command_lines(const std::string& first, std::string line, std::size_t columns) {
  std::string all;
  std::string before = first;
  while (before.size() + line.size() > columns && line.find('#') == line.npos) {
    std::size_t cut = 0;
    char quote = 0;
    for (std::size_t i = 0; i < line.size() && before.size() + i + 2 <= columns; ++i) {
      const char c = line[i];
      if (quote != 0 ? c == quote : c == '\'' || c == '"') quote = quote != 0 ? '\0' : c;
      if (quote == 0 && c == ' ' && i > 0) cut = i;
    }
    if (cut == 0) break;
    all += before + line.substr(0, cut) + " \\\n";
    line.erase(0, cut + 1);
    before.assign(first.size() + 2, ' ');
  }
  return all + before + line + "\n";
}

std::string mark(Severity severity, const DoctorStyle& style) {
  const std::string word = fmt::format("{:<{}}", to_string(severity), kCheckIndent);
  if (!style.colour) return word;
  constexpr std::array kColours{"32", "36", "33", "35", "31;1"};
  return fmt::format("\033[{}m{}\033[0m", kColours[static_cast<std::size_t>(severity)], word);
}

std::string heading(const Finding& one) {
  return printable(one.subject.empty() ? one.id : one.id + " (" + one.subject + ")");
}

// Colour takes no columns: lines are cut for the bare word, which is coloured afterwards.
std::string with_mark(std::string lines, Severity severity, const DoctorStyle& style) {
  return lines.empty() ? lines : mark(severity, style) + lines.substr(kCheckIndent);
}

std::string problem(const Finding& one, const DoctorStyle& style) {
  const std::string blank(kCheckIndent, ' ');
  std::string text = with_mark(
      wrapped_behind(blank, heading(one) + ": " + one.summary, style.columns), one.severity, style);
  text += wrapped_behind(blank + "seen  ", one.evidence, style.columns);
  std::string label = "fix   ";
  for (const std::string& line : one.fix) {
    text += line.starts_with("# ") ? wrapped_comment(blank + label, line.substr(2), style.columns)
                                   : command_lines(blank + label, printable(line), style.columns);
    label = "      ";
  }
  return text + blank + "see   " + printable(doc_link(one)) + "\n\n";
}

// Findings of one check that are well, in one line.
std::string good(const Report& report, const DoctorStyle& style) {
  std::string text;
  for (std::size_t i = 0; i < report.findings.size();) {
    const std::string& id = report.findings[i].id;
    std::string line;
    for (; i < report.findings.size() && report.findings[i].id == id; ++i) {
      const Finding& one = report.findings[i];
      if (one.severity != Severity::ok) continue;
      line += line.empty() ? fmt::format("{:<19} ", printable(id)) : "; ";
      line += one.subject.empty() ? one.summary : printable(one.subject) + " " + one.summary;
    }
    if (line.empty()) continue;
    const std::string first = std::string(kCheckIndent, ' ') + line.substr(0, 20);
    std::string lines = wrapped_behind(first, line.substr(20), style.columns);
    text += with_mark(std::move(lines), Severity::ok, style);
  }
  return text;
}

}  // namespace

std::string doctor_counts(const Report& report) {
  std::string text;
  for (const Severity severity : kWorstFirst) {
    const auto count = std::count_if(report.findings.begin(), report.findings.end(),
                                     [&](const Finding& one) { return one.severity == severity; });
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(severity));
  }
  return text;
}

std::string doctor_ids(const Report& report, Severity severity) {
  std::vector<std::string> ids;
  for (const Finding& one : report.findings) {
    if (one.severity != severity) continue;
    if (std::find(ids.begin(), ids.end(), one.id) == ids.end()) ids.push_back(one.id);
  }
  return fmt::format("{}", fmt::join(ids, ", "));
}

std::string doctor_text(const Report& report, const DoctorStyle& style) {
  std::string text = wrapped_behind("", report.host, style.columns) + "\n";
  for (const Severity severity : kWorstFirst) {
    if (severity == Severity::ok) break;
    for (const Finding& one : report.findings) {
      if (one.severity == severity) text += problem(one, style);
    }
  }
  text += good(report, style);
  if (!report.not_applicable.empty()) {
    text += "\n" + wrapped_behind("Nothing to look at for: ",
                                  fmt::format("{}", fmt::join(report.not_applicable, ", ")),
                                  style.columns);
  }
  return text + "\n" + doctor_counts(report) + "\n";
}

}  // namespace gdrx::tools
