// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "tools/perf/nic_traffic.hpp"

namespace gdrx::perf {
namespace {

using SteadyClock = std::chrono::steady_clock;

NicPerfRow row_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  NicPerfRow row;
  row.iterations = times.size();
  row.least = times.front();
  row.typical = at(0.5);
  row.mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  row.p99 = at(0.99);
  row.p999 = at(0.999);
  row.most = times.back();
  return row;
}

}  // namespace

double micros_since(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::micro>(SteadyClock::now() - start).count();
}

Result<NicPerfRow> run_latency(const NicPerfOptions& options,
                               const std::function<Result<double>(std::uint8_t round)>& once) {
  const auto count = static_cast<std::size_t>(options.iterations > 0 ? options.iterations : 1000);
  const std::size_t warm_up = std::min<std::size_t>(count / 10 + 1, 100);
  std::vector<double> times;
  times.reserve(count);
  const auto start = SteadyClock::now();
  for (std::size_t i = 0; i < count + warm_up; ++i) {
    const double time = GDRX_TRY(once(static_cast<std::uint8_t>(i % 250 + 1)));
    if (i >= warm_up) times.push_back(time);
    const bool over = options.duration > 0 && micros_since(start) > options.duration * 1e6;
    if (over && !times.empty()) break;
  }
  return row_of(std::move(times));
}

}  // namespace gdrx::perf
