// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/nic_perf_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gdrx::perf {
namespace {

bool is_latency(Test test) { return test == Test::write_lat || test == Test::read_lat; }

const topo::Nic* nic_of(const NicPerfReport& report, const topo::Topology& topology) {
  const std::string& port = report.host.empty() ? report.to : report.from;
  const std::string name = port.substr(0, port.find(' '));
  const auto found = std::find_if(topology.nics().begin(), topology.nics().end(),
                                  [&](const topo::Nic& nic) { return nic.name == name; });
  return found == topology.nics().end() ? nullptr : &*found;
}

void limit_by(Expectation& best, double gigabits, const std::string& why) {
  if (gigabits <= 0 || (best.gigabits > 0 && best.gigabits <= gigabits)) return;
  best = {gigabits, why};
}

std::string verdict(const NicPerfReport& report, const topo::Topology& topology) {
  const auto expected = expectation(report, topology);
  const topo::Nic* nic = nic_of(report, topology);
  if (nic != nullptr && nic->is_virtual) {
    return "a NIC in software: no speed is expected of it, only that it works\n";
  }
  if (!expected) return "what the NIC could do is not shown by this host\n";
  if (is_latency(report.options.test)) return {};
  double best = 0;
  for (const NicPerfRow& row : report.rows) best = std::max(best, row.gigabits);
  const double part = best / expected->gigabits;
  const char* word = part >= 0.8 ? "good" : part >= 0.5 ? "below what is possible" : "low";
  return fmt::format("{}: {:.1f} of {:.0f} Gb/s ({:.0f}%; {})\n{}", word, best, expected->gigabits,
                     part * 100, expected->why,
                     part >= 0.8 ? "" : "gdrx doctor looks for the reason: ACS, link width, MTU\n");
}

}  // namespace

std::optional<Expectation> expectation(const NicPerfReport& report,
                                       const topo::Topology& topology) {
  const topo::Nic* nic = nic_of(report, topology);
  if (nic == nullptr || nic->is_virtual) return std::nullopt;
  Expectation best;
  limit_by(best, nic->gigabits, fmt::format("port rate {:.0f} Gb/s", nic->gigabits));
  if (nic->node != topo::kNone) {
    const auto own = topo::gbytes(topology.nodes()[nic->node].link);
    if (own) limit_by(best, *own * 8, fmt::format("the NIC's PCIe link, {:.0f} Gb/s", *own * 8));
  }
  const auto gpu = topology.find(report.gpu_bus);
  if (!report.gpu_bus.empty() && gpu && !topology.flattened()) {
    const auto index = static_cast<std::size_t>(nic - topology.nics().data());
    const topo::Path path = topo::path(topology, *gpu, topology.nic(index));
    if (path.bottleneck) {
      limit_by(best, *path.bottleneck * 8,
               fmt::format("{}, {:.0f} Gb/s at {}", topo::cell(path, true), *path.bottleneck * 8,
                           path.limit));
    }
  }
  if (report.far_limit) limit_by(best, report.far_limit->gigabits, report.far_limit->why);
  if (best.gigabits <= 0) return std::nullopt;
  return best;
}

std::string nic_perf_text(const NicPerfReport& report, const topo::Topology& topology) {
  const NicPerfOptions& options = report.options;
  const std::string to = !report.host.empty()       ? report.to + " of " + report.host
                         : report.to == report.from ? "itself"
                                                    : report.to;
  std::string text = fmt::format("{}: {} to {}{}\n", to_string(options.test), report.from, to,
                                 options.both_ways ? ", both ways" : "");
  if (!report.host.empty()) text += fmt::format("near memory: {}\n", report.near_memory);
  text += fmt::format("far memory: {}; MTU {}{}\n", report.far_memory, report.mtu,
                      report.gid.empty() ? "" : "; GID " + report.gid);
  if (!is_latency(options.test)) {
    text += fmt::format("{} QP, {} messages on their way on each; Gb/s is 10^9 bits{}\n\n",
                        options.qps, options.depth, options.both_ways ? ", in each direction" : "");
    text += fmt::format("{:>12} {:>12} {:>12} {:>12} {:>12}\n", "bytes", "messages", "Gb/s", "GB/s",
                        "Mmsg/s");
    for (const NicPerfRow& row : report.rows) {
      text += fmt::format("{:>12} {:>12} {:>12.2f} {:>12.3f} {:>12.4f}\n", row.bytes,
                          row.iterations, row.gigabits, row.gigabits / 8, row.messages / 1e6);
    }
  } else {
    text += fmt::format("microseconds{}\n\n", report.ping_pong
                                                  ? ", half of there and back, seen in memory"
                                                  : ", until the completion");
    text += fmt::format("{:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "bytes", "messages",
                        "least", "typical", "mean", "99%", "99.9%");
    for (const NicPerfRow& row : report.rows) {
      text += fmt::format("{:>10} {:>10} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.2f}\n", row.bytes,
                          row.iterations, row.least, row.typical, row.mean, row.p99, row.p999);
    }
  }
  return text + "\nthe data was compared: equal\n" + verdict(report, topology);
}

std::string nic_perf_json(const NicPerfReport& report, const topo::Topology& topology) {
  auto rows = nlohmann::ordered_json::array();
  for (const NicPerfRow& row : report.rows) {
    nlohmann::ordered_json one{{"bytes", row.bytes}, {"messages", row.iterations}};
    if (is_latency(report.options.test)) {
      one["least_us"] = row.least;
      one["typical_us"] = row.typical;
      one["mean_us"] = row.mean;
      one["p99_us"] = row.p99;
      one["p999_us"] = row.p999;
      one["most_us"] = row.most;
    } else {
      one["gigabits"] = row.gigabits;
      one["messages_per_second"] = row.messages;
    }
    rows.push_back(std::move(one));
  }
  nlohmann::ordered_json all{{"schema", 1},
                             {"test", to_string(report.options.test)},
                             {"from", report.from},
                             {"host", report.host},
                             {"to", report.to},
                             {"gid", report.gid},
                             {"mtu", report.mtu},
                             {"near_memory", report.near_memory},
                             {"far_memory", report.far_memory},
                             {"qps", report.options.qps},
                             {"depth", report.options.depth},
                             {"both_ways", report.options.both_ways},
                             {"rows", rows}};
  if (const auto expected = expectation(report, topology)) {
    all["expected_gigabits"] = expected->gigabits;
    all["expected_why"] = expected->why;
  }
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gdrx::perf
