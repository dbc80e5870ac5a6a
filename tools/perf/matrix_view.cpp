// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/matrix_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/cpu_list.hpp"
#include "base/printable.hpp"
#include "base/size_text.hpp"
#include "tools/topo/topo_table.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::perf {
namespace {

using topo::HostMatrix;
using topo::SlowLink;

constexpr std::size_t kMostInATable = 16;
constexpr std::size_t kMostLines = 40;
constexpr int kColumns = 80;

std::string rate_text(double rate) {
  return rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.3g}", rate);
}

// One line each, and how many more.
class Lines {
 public:
  void add(const std::string& line) {
    if (++count_ <= kMostLines) text_ += tools::wrapped("  " + printable(line), 4) + "\n";
  }
  std::string text(const char* title) const {
    if (count_ == 0) return {};
    const std::string more =
        count_ > kMostLines ? fmt::format("  and {} more\n", count_ - kMostLines) : std::string();
    return fmt::format("\n{}\n{}{}", title, text_, more);
  }

 private:
  std::size_t count_ = 0;
  std::string text_;
};

using Cell = std::function<std::string(std::size_t from, std::size_t to)>;

std::string table(const MatrixReport& report, const Cell& cell) {
  std::vector<std::string> header{""};
  for (std::size_t to = 0; to < report.hosts.size(); ++to) header.push_back(fmt::format("{}", to));
  tools::Table rows(std::move(header));
  for (std::size_t from = 0; from < report.hosts.size(); ++from) {
    std::vector<std::string> row{fmt::format("{} {}", from, report.hosts[from])};
    for (std::size_t to = 0; to < report.hosts.size(); ++to) {
      row.push_back(from == to ? "-" : cell(from, to));
    }
    rows.add(std::move(row));
  }
  return rows.print(kColumns);
}

// Of many hosts what each sends and receives.
std::string rows_of_hosts(const HostMatrix& matrix, const std::vector<SlowLink>& slow,
                          const std::vector<double>& micros, const std::string& latency_words) {
  tools::Table rows({"host", "sends", "at least", "receives", "at least", "slow links", "us"});
  const auto figures = [&](bool sends, std::size_t host) {
    std::vector<double> all;
    for (std::size_t other = 0; other < matrix.hosts.size(); ++other) {
      const auto& rate = sends ? matrix.of(host, other) : matrix.of(other, host);
      if (host != other && rate) all.push_back(*rate);
    }
    std::sort(all.begin(), all.end());
    return all.empty() ? std::vector<double>{0} : all;
  };
  for (std::size_t host = 0; host < matrix.hosts.size(); ++host) {
    const auto sent = figures(true, host);
    const auto received = figures(false, host);
    const auto own = std::count_if(slow.begin(), slow.end(), [&](const SlowLink& link) {
      return link.from == host || link.to == host;
    });
    rows.add({matrix.hosts[host], rate_text(sent[sent.size() / 2]), rate_text(sent.front()),
              rate_text(received[received.size() / 2]), rate_text(received.front()),
              own == 0 ? "-" : fmt::format("{}", own),
              micros[host] > 0 ? rate_text(micros[host]) : "-"});
  }
  return "medians, and the slowest; us: " + latency_words + "\n" + rows.print(0);
}

const MatrixPair* pair_of(const MatrixReport& report, const std::string& nic, std::size_t from,
                          std::size_t to) {
  for (const MatrixPair& pair : report.pairs) {
    if (pair.nic == nic && pair.from == from && pair.to == to) return &pair;
  }
  return nullptr;
}

std::string latency_words(const MatrixReport& report) {
  return report.of_gpus ? "a write of 8 bytes, until its completion"
                        : "a write of 8 bytes, half of there and back";
}

// The median of what each host sends.
std::vector<double> typical_micros(const MatrixReport& report, const std::string& nic) {
  std::vector<std::vector<double>> all(report.hosts.size());
  for (const MatrixPair& pair : report.pairs) {
    if (pair.nic == nic && pair.problem.empty()) all[pair.from].push_back(pair.micros);
  }
  std::vector<double> typical;
  for (std::vector<double>& own : all) {
    std::sort(own.begin(), own.end());
    typical.push_back(own.empty() ? 0 : own[own.size() / 2]);
  }
  return typical;
}

std::string tables_of_nic(const MatrixReport& report, const std::string& nic,
                          const HostMatrix& matrix, const std::vector<SlowLink>& slow) {
  if (report.hosts.size() > kMostInATable) {
    return "\n" + rows_of_hosts(matrix, slow, typical_micros(report, nic), latency_words(report));
  }
  const auto is_slow = [&](std::size_t from, std::size_t to) {
    return std::any_of(slow.begin(), slow.end(), [&](const SlowLink& link) {
      return link.from == from && link.to == to && link.gigabits > 0;
    });
  };
  std::string text = "\n" + table(report, [&](std::size_t from, std::size_t to) {
                       const MatrixPair* pair = pair_of(report, nic, from, to);
                       if (pair == nullptr) return std::string("?");
                       if (!pair->problem.empty()) return std::string("failed");
                       return rate_text(pair->gigabits) + (is_slow(from, to) ? "*" : "");
                     });
  text += "\nmicroseconds of " + latency_words(report) + "\n\n";
  return text + table(report, [&](std::size_t from, std::size_t to) {
           const MatrixPair* pair = pair_of(report, nic, from, to);
           return pair == nullptr || !pair->problem.empty() ? std::string("-")
                                                            : rate_text(pair->micros);
         });
}

}  // namespace

HostMatrix host_matrix(const MatrixReport& report, const std::string* nic) {
  const std::size_t count = report.hosts.size();
  HostMatrix matrix{report.hosts, std::vector<std::optional<double>>(count * count)};
  for (const MatrixPair& pair : report.pairs) {
    if ((nic != nullptr && pair.nic != *nic) || pair.from >= count || pair.to >= count) continue;
    auto& rate = matrix.gigabits[pair.from * count + pair.to];
    const double own = pair.problem.empty() ? pair.gigabits : 0;
    rate = rate ? std::min(*rate, own) : own;
  }
  return matrix;
}

std::string shared_hosts_text(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& name : hosts) {
    if (!topo::is_own_name(name)) names += " " + name;
  }
  if (names.empty()) return {};
  return tools::wrapped("  several processes on one host, or a name that is no plain word:" + names,
                        4) +
         "\n";
}

// Which NIC each host's was, where it chose by itself.
std::string chosen_text(const MatrixReport& report) {
  std::map<std::string, std::set<std::size_t>> hosts;
  for (const MatrixPair& pair : report.pairs) {
    if (!pair.nic.empty() || !pair.problem.empty()) continue;
    if (!pair.from_nic.empty()) hosts[pair.from_nic].insert(pair.from);
    if (!pair.to_nic.empty()) hosts[pair.to_nic].insert(pair.to);
  }
  std::string text;
  for (const auto& [nic, of] : hosts) {
    if (hosts.size() == 1) return "\nby " + nic + " of each host\n";
    std::vector<int> numbers(of.begin(), of.end());
    text += tools::wrapped(fmt::format("  by {} of host{} {}", nic, of.size() == 1 ? "" : "s",
                                       list_of_cpus(numbers)),
                           4) +
            "\n";
  }
  return text.empty() ? text : "\n" + text;
}

std::string matrix_text(const MatrixReport& report) {
  std::string text = fmt::format("{} host{}: writes of {}, Gb/s from a row's host to a column's\n",
                                 report.hosts.size(), report.hosts.size() == 1 ? "" : "s",
                                 size_text(report.bytes));
  text += shared_hosts_text(report.hosts);
  Lines lines;
  Lines failed;
  bool marks = false;
  for (const std::string& nic : report.nics) {
    const HostMatrix matrix = host_matrix(report, &nic);
    const auto slow = slow_links(matrix);
    if (report.nics.size() > 1) text += "\n" + nic + "\n";
    text += tables_of_nic(report, nic, matrix, slow);
    for (const SlowLink& link : slow) {
      if (link.gigabits <= 0) continue;
      marks = true;
      lines.add(fmt::format("{} to {}{}: {} of {} Gb/s", report.hosts[link.from],
                            report.hosts[link.to], nic.empty() ? "" : " by " + nic,
                            rate_text(link.gigabits), rate_text(link.usual)));
    }
  }
  for (const MatrixPair& pair : report.pairs) {
    if (pair.problem.empty()) continue;
    failed.add(fmt::format("{} to {}{}: {}", report.hosts[pair.from], report.hosts[pair.to],
                           pair.nic.empty() ? "" : " by " + pair.nic, pair.problem));
  }
  text += chosen_text(report);
  text += lines.text("slow: below 0.7 of what is usual for the sender or the receiver");
  text += failed.text("failed");
  const bool some = std::any_of(report.pairs.begin(), report.pairs.end(),
                                [](const MatrixPair& pair) { return pair.problem.empty(); });
  return marks || !some ? text : text + "\nno link is slow beside the others\n";
}

}  // namespace gdrx::perf
