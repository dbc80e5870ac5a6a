// SPDX-License-Identifier: Apache-2.0
#include "topo/model/cpu_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topo/read/text.hpp"

namespace gdrx::topo {

std::vector<int> cpus_of_list(std::string_view text) {
  constexpr int kMost = 65536;
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto dash = range.find('-');
    const int first = to_int(range.substr(0, dash), -1);
    const int last = dash == range.npos ? first : to_int(range.substr(dash + 1), -1);
    if (cpus.size() > 2 * kMost) break;
    for (int cpu = first; cpu >= 0 && cpu <= last && cpu < kMost; ++cpu) cpus.push_back(cpu);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string list_of_cpus(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text +=
        end - i == 1 ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace gdrx::topo
