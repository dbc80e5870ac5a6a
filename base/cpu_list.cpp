// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gdrx {

namespace {

// -1: it is no number. A file's line ends in a newline.
int to_int(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == text.npos) return -1;
  text = text.substr(first, text.find_last_not_of(kBlank) + 1 - first);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : -1;
}

}  // namespace

std::vector<int> cpus_of_list(std::string_view text, std::size_t most) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto dash = range.find('-');
    const int first = to_int(range.substr(0, dash));
    const int last = dash == range.npos ? first : to_int(range.substr(dash + 1));
    for (int cpu = first; cpu >= 0 && cpu <= last && cpu < kMostCpus && cpus.size() < most; ++cpu) {
      cpus.push_back(cpu);
    }
    if (cpus.size() >= most) break;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

bool is_cpu_list(std::string_view text) {
  const auto number = [](std::string_view part) {
    const bool digits = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    const int cpu = digits ? to_int(part) : -1;
    return cpu < kMostCpus ? cpu : -1;
  };
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != text.npos;
    const std::string_view range = text.substr(0, comma);
    const auto dash = range.find('-');
    const int first = number(range.substr(0, dash));
    const int last = dash == range.npos ? first : number(range.substr(dash + 1));
    if (first < 0 || last < first) return false;
    if (more) text.remove_prefix(comma + 1);
  }
  return true;
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

}  // namespace gdrx
