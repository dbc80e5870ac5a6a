// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

namespace gdrx::tools {
namespace {

std::vector<tune::Point>& points_of(tune::Table& table, const std::string& transport,
                                    plan::Algorithm algorithm, int ranks, int hosts) {
  for (tune::Curve& curve : table.curves) {
    if (curve.transport == transport && curve.algorithm == algorithm && curve.ranks == ranks &&
        curve.hosts == hosts) {
      return curve.points;
    }
  }
  table.curves.push_back({transport, algorithm, ranks, hosts, {}});
  return table.curves.back().points;
}

void add_point(std::vector<tune::Point>& points, tune::Point point) {
  const auto at = std::lower_bound(points.begin(), points.end(), point,
                                   [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  if (at != points.end() && at->bytes == point.bytes) {
    at->us = std::min(at->us, point.us);
  } else {
    points.insert(at, point);
  }
}

struct Way {
  double us;
  std::string name;
};

}  // namespace

Result<void> add_rows(std::string_view json, tune::Table& table) {
  try {
    const nlohmann::json whole = nlohmann::json::parse(json);
    const auto rows = whole.at("rows").get<std::vector<nlohmann::json>>();
    // A run that registers measures each size without that, too, and again.
    const auto registers = [](const nlohmann::json& row) {
      return row.value("buffers_registered", false);
    };
    const bool only_registered = std::any_of(rows.begin(), rows.end(), registers);
    for (const nlohmann::json& row : rows) {
      if (only_registered && !registers(row)) continue;
      const auto algorithm = plan::parse_algorithm(row.at("algorithm").get<std::string>());
      if (!algorithm) return fail(Errc::internal, "allreduce_test names an unknown algorithm");
      auto transport = row.at("transport").get<std::string>();
      if (transport == tune::kGpu && row.value("registered", false)) {
        transport = tune::kGpuRegistered;
      }
      auto& points = points_of(table, transport, *algorithm, row.at("ranks").get<int>(),
                               row.at("hosts").get<int>());
      add_point(points, {row.at("bytes").get<Bytes>(), row.at("time_us").at("p50").get<double>()});
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(Errc::internal, std::string("allreduce_test's JSON: ") + error.what());
  }
  return {};
}

std::string gpu_of(std::string_view json) {
  const auto whole = nlohmann::json::parse(json, nullptr, false);
  const auto at = whole.is_object() ? whole.find("gpu") : whole.end();
  return at != whole.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string to_text(const tune::Table& table) {
  // GPU memory and host memory are not each other's rivals.
  std::map<std::tuple<bool, int, int, Bytes>, std::vector<Way>> rows;
  for (const tune::Curve& curve : table.curves) {
    for (const tune::Point& point : curve.points) {
      rows[{tune::is_of_gpus(curve), curve.hosts, curve.ranks, point.bytes}].push_back(
          {point.us, fmt::format("{} over {}", plan::to_string(curve.algorithm), curve.transport)});
    }
  }
  std::string text = fmt::format("# {}, {} CPUs{}{}\n", table.platform.cpu, table.platform.cpus,
                                 table.platform.gpu.empty() ? "" : ", ", table.platform.gpu);
  text += fmt::format("{:>6} {:>5} {:>11} {:>10}  {:<28} {}\n", "memory", "ranks", "bytes",
                      "best (us)", "way", "others (us)");
  for (auto& [key, ways] : rows) {
    const auto& [gpu, hosts, ranks, bytes] = key;
    std::sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.us < b.us; });
    text += fmt::format("{:>6} {:>5} {:>11} {:>10.2f}  {:<28}", gpu ? "cuda" : "host", ranks, bytes,
                        ways[0].us, ways[0].name);
    for (std::size_t i = 1; i < ways.size(); ++i) {
      text += fmt::format("{} {} {:.2f}", i == 1 ? "" : ",", ways[i].name, ways[i].us);
    }
    text += '\n';
  }
  return text;
}

}  // namespace gdrx::tools
