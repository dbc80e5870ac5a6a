// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "tools/doctor/doctor_view.hpp"

namespace gdrx::tools {
namespace {

using doctor::Finding;
using doctor::Report;
using doctor::Severity;

constexpr int kSchema = 1;

std::string named(const Finding& one) {
  return one.subject.empty() ? one.id : fmt::format("{} ({})", one.id, one.subject);
}

std::string word_of(const nlohmann::json& one, const char* key) {
  const bool there = one.is_object() && one.contains(key) && one[key].is_string();
  return there ? one[key].get<std::string>() : std::string();
}

}  // namespace

std::string doctor_json(const Report& report) {
  auto findings = nlohmann::ordered_json::array();
  for (const Finding& one : report.findings) {
    findings.push_back({{"id", one.id},
                        {"subject", one.subject},
                        {"severity", to_string(one.severity)},
                        {"summary", one.summary},
                        {"evidence", one.evidence},
                        {"fix", one.fix},
                        {"doc", doc_link(one)}});
  }
  auto traits = nlohmann::ordered_json::array();
  for (const doctor::Trait& one : report.traits) {
    traits.push_back({{"name", one.name}, {"value", one.value}});
  }
  const nlohmann::ordered_json all{{"schema", kSchema},
                                   {"host", report.host},
                                   {"worst", to_string(worst(report))},
                                   {"findings", findings},
                                   {"not_applicable", report.not_applicable},
                                   {"traits", traits}};
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<Report> parse_doctor_json(std::string_view text) {
  const auto all = nlohmann::json::parse(text, nullptr, false);
  const auto bad = [](const std::string& what) {
    return fail(Errc::invalid_argument, "not a report of gdrx doctor: " + what);
  };
  if (all.is_discarded()) return bad("it is no JSON");
  if (!all.is_object() || !all.contains("schema") || !all["schema"].is_number_integer()) {
    return bad("no schema number");
  }
  if (all["schema"] != kSchema) return bad(fmt::format("schema is not {}", kSchema));
  if (!all.contains("findings") || !all["findings"].is_array()) return bad("no findings");
  Report report;
  for (const auto& one : all["findings"]) {
    Finding found;
    found.id = word_of(one, "id");
    found.subject = word_of(one, "subject");
    found.summary = word_of(one, "summary");
    const auto severity = doctor::parse_severity(word_of(one, "severity"));
    if (found.id.empty() || !severity) return bad("a finding without id or severity");
    found.severity = *severity;
    report.findings.push_back(std::move(found));
  }
  const auto traits = all.value("traits", nlohmann::json::array());  // older reports have none
  for (const auto& one : traits) {
    doctor::Trait trait{word_of(one, "name"), word_of(one, "value")};
    if (trait.name.empty()) return bad("a trait without a name");
    report.traits.push_back(std::move(trait));
  }
  return report;
}

std::vector<std::string> doctor_worse(const Report& saved, const Report& now) {
  std::map<std::pair<std::string, std::string>, Severity> before;
  for (const Finding& one : saved.findings) {
    Severity& worst = before[{one.id, one.subject}];
    worst = std::max(worst, one.severity);
  }
  std::vector<std::string> lines;
  for (const Finding& one : now.findings) {
    const auto found = before.find({one.id, one.subject});
    if (found == before.end()) {
      if (one.severity < Severity::slow) continue;  // new, and no reason to stop
      lines.push_back(printable(
          fmt::format("{}: {} (new): {}", named(one), to_string(one.severity), one.summary)));
      continue;
    }
    if (one.severity > found->second) {
      lines.push_back(
          printable(fmt::format("{}: was {}, is {}: {}", named(one), to_string(found->second),
                                to_string(one.severity), one.summary)));
    }
  }
  for (const Finding& one : saved.findings) {
    const bool still = std::any_of(
        now.findings.begin(), now.findings.end(),
        [&](const auto& other) { return other.id == one.id && other.subject == one.subject; });
    // What was bad and is not there any more is no loss.
    if (!still && one.severity == Severity::ok && !one.subject.empty()) {
      lines.push_back(printable(fmt::format("{}: was OK, is not there any more", named(one))));
    }
  }
  return lines;
}

}  // namespace gdrx::tools
