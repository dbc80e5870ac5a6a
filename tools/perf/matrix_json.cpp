// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "doctor/shell.hpp"
#include "tools/perf/matrix_view.hpp"

namespace gdrx::perf {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

// A name enters hostfiles and lines of shells, but for one that is a process's number.
bool is_host_name(const std::string& name) {
  const std::size_t end = std::min(name.find(topo::kNoHost), name.size());
  const std::string number = name.substr(std::min(end + 1, name.size()));
  const bool counts = !number.empty() && number.find_first_not_of("0123456789") == number.npos;
  return name.size() <= kMostName && name[0] != '-' && doctor::is_plain_name(name.substr(0, end)) &&
         (end == name.size() || counts);
}

// Brackets within brackets take many times their size in memory.
bool is_flat(std::string_view text) {
  constexpr int kMostDepth = 4;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size() && depth <= kMostDepth; ++i) {
    if (text[i] == '"') quoted = !quoted;
    if (quoted && text[i] == '\\') ++i;
    if (quoted) continue;
    if (text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == '}') --depth;
  }
  return depth <= kMostDepth;
}

std::string shown(const std::string& text) { return printable(text.substr(0, 60)); }

class MatrixReader {
 public:
  explicit MatrixReader(const std::string& source) : source_(source) {}

  Result<topo::HostMatrix> read(const nlohmann::json& all) {
    if (!all.is_object() || !all.contains("matrix") || !all.contains("schema")) {
      return wrong("it is none of gdrx perf --matrix");
    }
    if (all["schema"] != kSchema) return wrong(fmt::format("schema is not {}", kSchema));
    GDRX_TRY(hosts(all.value("hosts", nlohmann::json())));
    const auto pairs = all.find("pairs");
    if (pairs == all.end() || !pairs->is_array()) return wrong("no pairs");
    const std::size_t count = matrix_.hosts.size();
    matrix_.gigabits.resize(count * count);
    for (const auto& one : *pairs) GDRX_TRY(pair(one));
    return std::move(matrix_);
  }

 private:
  tl::unexpected<Error> wrong(const std::string& why) const {
    return fail(Errc::invalid_argument, fmt::format("{}: {}", printable(source_), why));
  }

  Result<void> hosts(const nlohmann::json& all) {
    if (!all.is_array() || all.empty()) return wrong("no hosts");
    if (all.size() > topo::kMostRingHosts) {
      return wrong(fmt::format("{} hosts: {} at most", all.size(), topo::kMostRingHosts));
    }
    for (const auto& one : all) {
      const std::string name = one.is_string() ? one.get<std::string>() : std::string();
      if (!is_host_name(name)) return wrong(fmt::format("'{}' is no host's name", shown(name)));
      if (!place_.emplace(name, matrix_.hosts.size()).second) {
        return wrong(name + " is there twice");
      }
      matrix_.hosts.push_back(name);
    }
    return {};
  }

  Result<std::size_t> host_of(const nlohmann::json& one, const char* member) const {
    const auto found = one.find(member);
    const std::string name =
        found != one.end() && found->is_string() ? found->get<std::string>() : std::string();
    const auto place = place_.find(name);
    if (place == place_.end()) {
      return wrong(fmt::format("a pair is of '{}', which is none of the hosts", shown(name)));
    }
    return place->second;
  }

  Result<void> pair(const nlohmann::json& one) {
    if (!one.is_object()) return wrong("a pair is no object");
    const std::size_t from = GDRX_TRY(host_of(one, "from"));
    const std::size_t to = GDRX_TRY(host_of(one, "to"));
    const std::string name = fmt::format("{} to {}", matrix_.hosts[from], matrix_.hosts[to]);
    if (from == to) return wrong(name + ": a host to itself is no pair");
    const auto nic = one.value("nic", nlohmann::json());
    const std::string by = nic.is_string() ? nic.get<std::string>() : std::string();
    if (!seen_.emplace(std::tuple(from, to, by), true).second) {
      return wrong(name + " is there twice");
    }
    const auto rate = one.value("gigabits", nlohmann::json());
    const auto problem = one.value("problem", nlohmann::json());
    const bool failed = problem.is_string() && !problem.get<std::string>().empty();
    if (!failed && !rate.is_number()) return wrong(name + ": no gigabits, and no problem");
    const double own = failed ? 0 : rate.get<double>();
    if (!std::isfinite(own) || own < 0 || own > kMostGigabits) {
      return wrong(fmt::format("{}: {} Gb/s cannot be", name, own));
    }
    auto& known = matrix_.gigabits[from * matrix_.hosts.size() + to];
    known = known ? std::min(*known, own) : own;  // of several NICs the slowest counts
    return {};
  }

  const std::string& source_;
  topo::HostMatrix matrix_;
  std::map<std::string, std::size_t> place_;
  std::map<std::tuple<std::size_t, std::size_t, std::string>, bool> seen_;
};

std::string words(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string matrix_json(const MatrixReport& report) {
  std::string pairs;  // a line each, of what may be a million
  for (const MatrixPair& pair : report.pairs) {
    Json one{{"from", report.hosts[pair.from]}, {"to", report.hosts[pair.to]}, {"nic", pair.nic}};
    if (pair.problem.empty()) {
      one["gigabits"] = pair.gigabits;
      one["typical_us"] = pair.micros;
      one["from_nic"] = pair.from_nic;
      one["to_nic"] = pair.to_nic;
    } else {
      one["problem"] = pair.problem;
    }
    pairs += (pairs.empty() ? "" : ",\n") + words(one);
  }
  std::string text = words({{"schema", kSchema},
                            {"matrix", "write_bw"},
                            {"bytes", report.bytes},
                            {"hosts", report.hosts},
                            {"nics", report.nics}});
  text.pop_back();
  return text + ",\"pairs\":[\n" + pairs + "\n]}\n";
}

Result<topo::HostMatrix> read_matrix(std::string_view text, const std::string& source) {
  if (!is_flat(text)) {
    return fail(Errc::invalid_argument, printable(source) + ": it is none of gdrx perf --matrix");
  }
  const auto all = nlohmann::json::parse(text, nullptr, false);
  if (all.is_discarded()) {
    return fail(Errc::invalid_argument,
                fmt::format("{}: it is no JSON, or has a number that is none", printable(source)));
  }
  return MatrixReader(source).read(all);
}

}  // namespace gdrx::perf
