// SPDX-License-Identifier: Apache-2.0
#include "collectives/tune/tune_table.hpp"

#include <algorithm>
#include <iterator>

namespace gdrx::tune {

// Additions, multiplications and divisions alone, without contraction: ranks on different CPUs get
// the same number, and so the same choice.
std::optional<double> time_of(std::span<const Point> points, Bytes bytes) noexcept {
  if (points.empty() || bytes < points.front().bytes) return std::nullopt;
  const auto above =
      std::lower_bound(points.begin(), points.end(), bytes,
                       [](const Point& point, Bytes size) { return point.bytes < size; });
  if (above == points.end()) return std::nullopt;
  if (above->bytes == bytes) return above->us;
  const Point& below = *(above - 1);
  const double part =
      static_cast<double>(bytes - below.bytes) / static_cast<double>(above->bytes - below.bytes);
  return below.us + part * (above->us - below.us);
}

std::vector<Curve> curves_at(const Table& table, int ranks, int hosts) {
  std::vector<Curve> here;
  std::copy_if(table.curves.begin(), table.curves.end(), std::back_inserter(here),
               [&](const Curve& curve) { return curve.ranks == ranks && curve.hosts == hosts; });
  return here;
}

std::span<const Point> find(std::span<const Curve> curves, std::string_view transport,
                            plan::Algorithm algorithm) noexcept {
  for (const Curve& curve : curves) {
    if (curve.transport == transport && curve.algorithm == algorithm) return curve.points;
  }
  return {};
}

const Table* known(const Platform& platform) {
  static const std::vector<Table> kAll = [] {
    std::vector<Table> all;
    for (const std::string_view text : known_texts()) {
      if (auto table = from_json(text)) all.push_back(*std::move(table));  // a test has that all do
    }
    return all;
  }();
  for (const Table& table : kAll) {
    // What was measured on a GPU does not depend on the CPU, and the other way round.
    const bool fits = table.platform.gpu.empty() ? table.platform.cpu == platform.cpu &&
                                                       table.platform.cpus == platform.cpus
                                                 : table.platform.gpu == platform.gpu;
    if (fits) return &table;
  }
  return nullptr;
}

}  // namespace gdrx::tune
