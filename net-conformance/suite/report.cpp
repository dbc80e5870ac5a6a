// SPDX-License-Identifier: Apache-2.0
#include "net-conformance/suite/report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdrx::conformance {

const char* to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::fail:
      return "FAIL";
    case Verdict::skip:
      return "skip";
    case Verdict::blocked:
      return "blocked";
  }
  return "?";
}

const char* to_string(Severity severity) noexcept {
  return severity == Severity::must ? "must" : "should";
}

std::string describe(const Finding& finding) {
  const Rule& rule = *finding.rule;
  const double ms = static_cast<double>(finding.took.count()) / 1000.0;
  switch (finding.verdict) {
    case Verdict::pass:
      return fmt::format("{:<8}{:<28}{:>9.1f} ms", to_string(finding.verdict), rule.id, ms);
    case Verdict::skip:
    case Verdict::blocked:
      return fmt::format("{:<8}{:<28}{}", to_string(finding.verdict), rule.id, finding.seen);
    case Verdict::fail:
      break;
  }
  const char* word = rule.severity == Severity::must ? "FAIL" : "advice";
  return fmt::format("{:<8}{:<28}{:>9.1f} ms\n    the rule: {}\n    seen:     {}\n    NCCL:     {}",
                     word, rule.id, ms, rule.demand, finding.seen, rule.consequence);
}

std::string summary(const std::vector<Finding>& findings) {
  const auto count = [&](Verdict verdict, Severity severity) {
    return std::ranges::count_if(findings, [&](const Finding& finding) {
      return finding.verdict == verdict && finding.rule->severity == severity;
    });
  };
  const auto both = [&](Verdict verdict) {
    return count(verdict, Severity::must) + count(verdict, Severity::should);
  };
  return fmt::format("{} rules: {} hold, {} broken, {} advised against, {} skipped, {} blocked",
                     findings.size(), both(Verdict::pass), count(Verdict::fail, Severity::must),
                     count(Verdict::fail, Severity::should), both(Verdict::skip),
                     both(Verdict::blocked));
}

nlohmann::json to_json(const Rule& rule) {
  return {{"id", rule.id},
          {"severity", to_string(rule.severity)},
          {"demand", rule.demand},
          {"consequence", rule.consequence}};
}

nlohmann::json to_json(const Finding& finding) {
  nlohmann::json json = to_json(*finding.rule);
  json["verdict"] = finding.verdict == Verdict::fail ? "fail" : to_string(finding.verdict);
  json["seen"] = finding.seen;
  json["us"] = finding.took.count();
  return json;
}

std::size_t failures(const std::vector<Finding>& findings, bool strict) {
  return static_cast<std::size_t>(std::ranges::count_if(findings, [&](const Finding& finding) {
    const bool counts = strict || finding.rule->severity == Severity::must;
    return counts && (finding.verdict == Verdict::fail || finding.verdict == Verdict::blocked);
  }));
}

}  // namespace gdrx::conformance
