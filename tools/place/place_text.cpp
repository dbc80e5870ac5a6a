// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/cpu_list.hpp"
#include "tools/place/hosts_view.hpp"
#include "tools/place/place_view.hpp"
#include "tools/topo/topo_table.hpp"
#include "tools/topo/topo_view.hpp"
#include "topo/place/forecast.hpp"

namespace gdrx::tools {
namespace {

using nlohmann::ordered_json;
using topo::Placement;
using topo::RankPlace;
using topo::Topology;

std::string gpu_name(const Topology& topology, const RankPlace& rank) {
  if (rank.gpu != topo::kNone) return topology.gpus()[rank.gpu].name;
  return rank.token.empty() ? "-" : rank.token;
}

std::string nic_names(const Topology& topology, const RankPlace& rank) {
  std::string text;
  for (const topo::RailChoice& choice : rank.nics) {
    text += (text.empty() ? "" : ",") + topology.nics()[choice.nic].name;
  }
  return text.empty() ? "-" : text;
}

std::string host_name(const Placement& placement, const RankPlace& rank) {
  const auto host = static_cast<std::size_t>(rank.host);
  return host < placement.host_names.size() ? placement.host_names[host]
                                            : fmt::format("{}", rank.host);
}

// Of equal hosts the first of each number of ranks.
std::vector<int> shown_hosts(const Placement& placement) {
  std::vector<long> counts(static_cast<std::size_t>(placement.hosts), 0);
  for (const RankPlace& rank : placement.ranks) ++counts[static_cast<std::size_t>(rank.host)];
  std::vector<int> shown;
  std::set<long> seen{0};
  for (int host = 0; host < placement.hosts; ++host) {
    if (seen.insert(counts[static_cast<std::size_t>(host)]).second) shown.push_back(host);
  }
  return shown;
}

}  // namespace

std::string place_text(const Topology& topology, const Placement& placement) {
  const std::vector<int> hosts = shown_hosts(placement);
  Table table({"rank", "host", "GPU", "NIC", "NUMA", "cores", "CPUs", "progress"});
  std::string why;
  for (const RankPlace& rank : placement.ranks) {
    if (std::find(hosts.begin(), hosts.end(), rank.host) == hosts.end()) continue;
    table.add({fmt::format("{}", rank.rank), host_name(placement, rank), gpu_name(topology, rank),
               nic_names(topology, rank),
               rank.numa.empty() ? "-" : fmt::format("{}", fmt::join(rank.numa, ",")),
               rank.cores == 0 ? "-" : fmt::format("{}", rank.cores),
               rank.cpus.empty() ? "-" : list_of_cpus(rank.cpus),
               rank.progress_cpu < 0 ? "-" : fmt::format("{}", rank.progress_cpu)});
    why += wrapped(fmt::format("  rank {}: {}", rank.rank, rank.reason), 4) + "\n";
  }
  std::string text = fmt::format("{}: {} rank{}", topology.source(), placement.ranks.size(),
                                 placement.ranks.size() == 1 ? "" : "s");
  if (placement.hosts > 1) {
    text += fmt::format(" on {} equal hosts, of which {} shown", placement.hosts,
                        hosts.size() == 1 ? "one is" : "two are");
  }
  text += "\n\n" + table.print(0) + "\nwhy\n" + why;
  if (!placement.notes.empty()) text += "\nnotes\n";
  for (const std::string& note : placement.notes) text += wrapped("  " + note, 4) + "\n";
  return text;
}

std::string forecast_text(const Topology& topology, const Placement& placement) {
  constexpr std::uint64_t kSeed = 1;
  const topo::Forecast placed = forecast(topology, placement.ranks);
  const topo::Forecast other = forecast(topology, shuffled(placement, kSeed));
  Table table({"GB/s a rank", "placed", "shuffled", "loss"});
  std::string limits;
  const auto row = [&](const char* what, const topo::Rate& here, const topo::Rate& there) {
    const auto shown = [](double rate) { return rate > 0 ? fmt::format("{:.1f}", rate) : "-"; };
    const bool both = here.gbytes > 0 && there.gbytes > 0;
    table.add({what, shown(here.gbytes), shown(there.gbytes),
               both ? fmt::format("{:.0f} %", 100 * (1 - there.gbytes / here.gbytes)) : "-"});
    if (here.gbytes <= 0) return;
    limits +=
        wrapped(fmt::format("{}: limited by {}; shuffled by {}", what, here.limit, there.limit), 4);
    limits += "\n";
  };
  row("ring", placed.ring, other.ring);
  row("to the NIC", placed.nic, other.nic);
  row("to its cores' memory", placed.host, other.host);
  std::set<std::string> assumed = placed.assumed;
  assumed.insert(other.assumed.begin(), other.assumed.end());
  assumed.insert("one shuffle for all, so that another may lose more or less");
  return "\npredicted, while all ranks do the same\n" + table.print(0) + limits +
         wrapped(
             fmt::format("assumed, not read: {}. Measure with gdrx perf", fmt::join(assumed, "; ")),
             4) +
         "\n";
}

std::string place_json(const Topology& topology, const Placement& placement,
                       const MeasuredHosts* hosts) {
  ordered_json ranks = ordered_json::array();
  for (const RankPlace& rank : placement.ranks) {
    ordered_json nics = ordered_json::array();
    for (const topo::RailChoice& choice : rank.nics) {
      nics.push_back(topology.nics()[choice.nic].name);
    }
    ordered_json environment = ordered_json::object();
    for (const auto& [name, value] : rank_environment(topology, placement, rank)) {
      environment[name] = value;
    }
    ordered_json one{{"rank", rank.rank},
                     {"host", rank.host},
                     {"local_rank", rank.local},
                     {"gpu", nullptr},
                     {"nics", nics},
                     {"numa", rank.numa},
                     {"cores", rank.cores},
                     {"cpus", list_of_cpus(rank.cpus)},
                     {"progress_cpu", nullptr},
                     {"environment", environment},
                     {"reason", rank.reason}};
    if (rank.gpu != topo::kNone) one["gpu"] = topology.gpus()[rank.gpu].name;
    if (rank.progress_cpu >= 0) one["progress_cpu"] = rank.progress_cpu;
    ranks.push_back(std::move(one));
  }
  ordered_json json{{"source", topology.source()},
                    {"hosts", placement.hosts},
                    {"ranks", ranks},
                    {"notes", placement.notes}};
  if (hosts != nullptr) add_hosts_json(json, *hosts);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace gdrx::tools
