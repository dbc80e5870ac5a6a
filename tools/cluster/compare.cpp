// SPDX-License-Identifier: Apache-2.0
#include "tools/cluster/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "tools/doctor/doctor_view.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kNotThere = "not there";

// Values by host of each name, in the order in which the names first come.
class HostTable {
 public:
  void put(const std::string& name, std::size_t host, std::string value) {
    const auto [found, fresh] = rows_.try_emplace(name);
    if (fresh) order_.push_back(name);
    std::string& known = found->second[host];
    known += (known.empty() ? "" : "; ") + value;
  }
  std::vector<Difference> differences(const std::vector<std::string>& hosts, bool findings) const {
    std::vector<Difference> all;
    for (const std::string& name : order_) {
      const auto& row = rows_.at(name);
      Difference one{name, {}, findings};
      for (std::size_t host = 0; host < hosts.size(); ++host) {
        const auto found = row.find(host);
        const std::string value = found == row.end() ? kNotThere : found->second;
        auto group = std::find_if(one.groups.begin(), one.groups.end(),
                                  [&](const Group& each) { return each.value == value; });
        if (group == one.groups.end()) group = one.groups.insert(group, {value, {}});
        group->hosts.push_back(hosts[host]);
      }
      if (one.groups.size() < 2) continue;
      std::stable_sort(one.groups.begin(), one.groups.end(), [](const Group& a, const Group& b) {
        return a.hosts.size() > b.hosts.size();
      });
      all.push_back(std::move(one));
    }
    return all;
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::map<std::size_t, std::string>> rows_;
};

std::string odd_one(const std::vector<Difference>& differences) {
  std::map<std::string, int> times;
  for (const Difference& one : differences) {
    const bool clear = one.groups[0].hosts.size() > one.groups[1].hosts.size();
    for (std::size_t i = 1; clear && i < one.groups.size(); ++i) {
      for (const std::string& host : one.groups[i].hosts) ++times[host];
    }
  }
  const auto most = std::max_element(
      times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == times.end() ? std::string() : most->first;
}

std::string hosts_text(const std::vector<std::string>& hosts) {
  constexpr std::size_t kNamed = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), kNamed); ++i) {
    text += (i == 0 ? "" : ", ") + hosts[i];
  }
  return hosts.size() > kNamed ? fmt::format("{} and {} more", text, hosts.size() - kNamed) : text;
}

// Hosts beside a value, or below one that is long.
std::string value_line(const Group& group) {
  constexpr std::size_t kNameWidth = 29;
  std::string text = fmt::format("    {:<24} ", wrapped(group.value, 4));
  if (group.value.size() > 24) text += '\n' + std::string(kNameWidth, ' ');
  return text + wrapped(hosts_text(group.hosts), kNameWidth) + '\n';
}

void add_reached(Comparison& into, const std::vector<HostReport>& reports,
                 const std::vector<perf::Reached>& reached) {
  for (const perf::Reached& one : reached) {
    if (one.from_rank >= reports.size() || one.to_rank >= reports.size()) continue;
    const bool rail = one.from == one.to;
    ++(rail ? into.rails : into.crossing);
    if (one.problem.empty()) {
      into.crossing_reached += rail ? 0 : 1;
    } else if (rail) {
      into.unreached.push_back(
          printable(fmt::format("{} {} to {}: {}", reports[one.from_rank].host, one.from,
                                reports[one.to_rank].host, one.problem)));
    }
  }
}

std::string reached_text(const Comparison& comparison) {
  constexpr std::size_t kMost = 20;
  if (comparison.rails + comparison.crossing == 0) return {};
  std::string text = fmt::format("\nNICs of one name reach each other: {} of {} pairs\n",
                                 comparison.rails - comparison.unreached.size(), comparison.rails);
  for (std::size_t i = 0; i < std::min(kMost, comparison.unreached.size()); ++i) {
    text += "    " + comparison.unreached[i] + "\n";
  }
  if (comparison.unreached.size() > kMost) {
    text += fmt::format("    and {} more\n", comparison.unreached.size() - kMost);
  }
  if (comparison.crossing == 0) return text;
  text += fmt::format("NICs of other names: {} of {} pairs\n", comparison.crossing_reached,
                      comparison.crossing);
  if (comparison.crossing_reached == 0) {
    text += "    the rails are networks of their own: NCCL_CROSS_NIC=0\n";
  }
  return text;
}

}  // namespace

Comparison compare(const std::vector<HostReport>& reports,
                   const std::vector<perf::Reached>& reached) {
  Comparison comparison;
  std::vector<std::string> hosts;
  HostTable traits;
  HostTable findings;
  for (const HostReport& one : reports) {
    if (!one.problem.empty()) {
      comparison.silent.push_back(one);
      continue;
    }
    const std::size_t host = hosts.size();
    hosts.push_back(printable(one.host));
    comparison.worst = std::max(comparison.worst, worst(one.report));
    for (const doctor::Trait& trait : one.report.traits) {
      traits.put(printable(trait.name), host, printable(trait.value));
    }
    for (const doctor::Finding& found : one.report.findings) {
      const std::string name =
          found.subject.empty() ? found.id : fmt::format("{} ({})", found.id, found.subject);
      findings.put(printable(name), host, std::string(to_string(found.severity)));
    }
  }
  comparison.hosts = reports.size();
  comparison.differences = traits.differences(hosts, false);
  for (Difference& one : findings.differences(hosts, true)) {
    comparison.differences.push_back(std::move(one));
  }
  comparison.odd = odd_one(comparison.differences);
  add_reached(comparison, reports, reached);
  return comparison;
}

std::string comparison_text(const Comparison& comparison) {
  std::string text =
      fmt::format("{} hosts, {} differences\n", comparison.hosts, comparison.differences.size());
  for (const HostReport& one : comparison.silent) {
    text += fmt::format("\nno report of {}: {}\n", printable(one.host), printable(one.problem));
  }
  bool findings = false;
  for (const Difference& one : comparison.differences) {
    if (one.is_finding && !findings) text += "\nfindings that differ\n";
    findings = one.is_finding;
    text += fmt::format("\n{}\n", one.what);
    for (const Group& group : one.groups) {
      text += value_line(group);
    }
  }
  text += reached_text(comparison);
  if (!comparison.odd.empty()) text += fmt::format("\nthe odd one out: {}\n", comparison.odd);
  return text;
}

std::string comparison_json(const Comparison& comparison) {
  using Json = nlohmann::ordered_json;
  Json differences = Json::array();
  for (const Difference& one : comparison.differences) {
    Json groups = Json::array();
    for (const Group& group : one.groups) {
      groups.push_back(Json{{"value", group.value}, {"hosts", group.hosts}});
    }
    differences.push_back(Json{
        {"what", one.what}, {"kind", one.is_finding ? "finding" : "trait"}, {"groups", groups}});
  }
  Json silent = Json::array();
  for (const HostReport& one : comparison.silent) {
    silent.push_back(Json{{"host", one.host}, {"problem", one.problem}});
  }
  const Json all{{"schema", 1},
                 {"hosts", comparison.hosts},
                 {"worst", to_string(comparison.worst)},
                 {"odd", comparison.odd},
                 {"differences", differences},
                 {"without_report", silent},
                 {"rail_pairs", comparison.rails},
                 {"rails_not_reached", comparison.unreached},
                 {"crossing_pairs", comparison.crossing},
                 {"crossing_reached", comparison.crossing_reached}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gdrx::tools
