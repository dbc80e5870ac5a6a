// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/cpu_list.hpp"
#include "base/printable.hpp"
#include "tools/topo/nccl_view.hpp"
#include "tools/topo/topo_table.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

using topo::NcclChannel;
using topo::NcclGraph;
using topo::Topology;

std::string channel_text(const Topology& topology, const NcclChannel& channel) {
  std::string text;
  if (channel.in != topo::kNone) text = topology.nics()[channel.in].name + ": ";
  text += channel.gpus.empty() ? "?" : fmt::format("{}", fmt::join(channel.gpus, " "));
  if (channel.gpus.size() < topology.gpus().size() && !channel.gpus.empty()) text += " ...";
  if (channel.out != channel.in) text += " :" + topology.nics()[channel.out].name;
  return text;
}

std::vector<std::string> summary(const std::string& whose, const NcclGraph& ring,
                                 std::size_t gpus) {
  if (ring.channels.empty()) return {whose, "?", "?", "?", "?", "?"};
  const bool nets = ring.channels.front().in != topo::kNone;
  return {whose,
          fmt::format("{}", ring.channels.size()),
          fmt::format("{:g}", ring.intra),
          fmt::format("{:g}", static_cast<double>(ring.channels.size()) * ring.intra),
          ring.channels.front().gpus.size() == gpus ? ring.type_intra : "?",
          nets ? ring.type_inter : "-"};
}

// Channels of one kind once, with their numbers.
std::vector<std::pair<std::string, std::vector<int>>> kinds(const Topology& topology,
                                                            const NcclGraph& ring) {
  std::vector<std::pair<std::string, std::vector<int>>> all;
  for (std::size_t i = 0; i < ring.channels.size(); ++i) {
    const std::string text = channel_text(topology, ring.channels[i]);
    auto known = std::find_if(all.begin(), all.end(),
                              [&](const auto& other) { return other.first == text; });
    if (known == all.end()) known = all.insert(known, {text, {}});
    known->second.push_back(static_cast<int>(i));
  }
  return all;
}

std::string side_by_side(const Topology& topology, const NcclGraph& ours, const NcclGraph& theirs) {
  const auto left = kinds(topology, ours);
  const auto right = kinds(topology, theirs);
  Table table({"gdrx", "channels", "NCCL", "channels"});
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    std::vector<std::string> row;
    for (const auto* side : {&left, &right}) {
      const bool there = i < side->size();
      row.push_back(there ? (*side)[i].first : "");
      row.push_back(there ? list_of_cpus((*side)[i].second) : "");
    }
    table.add(std::move(row));
  }
  return table.print(0);
}

std::vector<std::size_t> nics_of(const NcclGraph& ring) {
  std::vector<std::size_t> nics;
  for (const NcclChannel& channel : ring.channels) nics.push_back(channel.in);
  std::sort(nics.begin(), nics.end());
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  return nics;
}

bool turned_round(const std::vector<std::size_t>& a, std::vector<std::size_t> b) {
  if (a.size() != b.size() || a.empty()) return false;
  std::reverse(b.begin(), b.end());
  std::vector<std::size_t> twice = b;
  twice.insert(twice.end(), b.begin(), b.end());
  return std::search(twice.begin(), twice.end(), a.begin(), a.end()) != twice.end();
}

bool only_begins_elsewhere(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  std::vector<std::size_t> back = b;
  std::reverse(back.begin(), back.end());
  return turned_round(a, back);
}

std::string about_nics(const NcclGraph& ours, const NcclGraph& theirs) {
  if (nics_of(ours) != nics_of(theirs)) {
    return "NICs: NCCL takes those of the highest rate, then the nearest, and shares by the GPU's "
           "number; gdrx's map takes the nearest and evens loads out";
  }
  const auto listed = [](const NcclGraph& ring) {
    std::vector<std::size_t> nics;
    for (const NcclChannel& channel : ring.channels) nics.push_back(channel.in);
    nics.resize(std::min(nics.size(), nics_of(ring).size()));
    return nics;
  };
  if (listed(ours) == listed(theirs)) return {};
  return "NICs: the same ones, which NCCL shares by the mirrored bits of the GPU's number where "
         "they "
         "are as near";
}

// One line for each way in which they differ.
std::vector<std::string> differences(const NcclGraph& ours, const NcclGraph& theirs) {
  if (theirs.channels.empty()) return {};
  std::vector<std::string> lines;
  const double mine = static_cast<double>(ours.channels.size()) * ours.intra;
  const double other = static_cast<double>(theirs.channels.size()) * theirs.intra;
  const std::string nics = about_nics(ours, theirs);
  if (!nics.empty()) lines.push_back(nics);
  std::size_t at = 0;  // the first channel in which they differ
  const std::size_t both = std::min(ours.channels.size(), theirs.channels.size());
  while (at + 1 < both && ours.channels[at].gpus == theirs.channels[at].gpus) ++at;
  const auto& a = ours.channels[at].gpus;
  const auto& b = theirs.channels[at].gpus;
  if (turned_round(a, b) && !only_begins_elsewhere(a, b)) {
    lines.emplace_back(
        "order: the other way round: from a NIC's GPU NCCL goes down where all "
        "links are alike, gdrx up; the same links, the same rate");
  } else if (only_begins_elsewhere(a, b) && a != b) {
    lines.emplace_back(
        "order: the same ring, begun at another GPU: gdrx begins where first and last "
        "GPU are near the NIC");
  } else if (a != b && a.size() == b.size()) {
    lines.emplace_back("order: NCCL tries the order of bus ids first, gdrx joins near GPUs first");
  }
  if (ours.channels.size() != theirs.channels.size()) {
    lines.emplace_back(
        ours.channels.front().in == topo::kNone
            ? "channels: gdrx has one order for all, NCCL may have several"
            : "channels: gdrx gives each NIC as many; NCCL as many as fit its speed");
  }
  if (std::abs(mine - other) > 0.01 * std::max(mine, other)) {
    lines.push_back(fmt::format("rate: {:g} GB/s beside {:g}, as NCCL counts links", mine, other));
  }
  return lines;
}

// NCCL's reader skips comments, up to the first "-->".
std::string xml_comment(const std::string& words) {
  return words.find("--") == words.npos ? "<!-- " + printable(words) + " -->\n" : std::string();
}

}  // namespace

Result<std::string> nccl_graph_file(const Topology& topology, bool alone, bool one_by_one) {
  if (!alone && !one_by_one && may_span_hosts_by_nvlink(topology)) {
    return fail(Errc::unsupported,
                "NVLink may join these hosts, and NCCL then takes them for one: say --one-host, or "
                "set NCCL_MNNVL_ENABLE=0 here and for the job");
  }
  const auto graphs = GDRX_TRY(our_nccl_graphs(topology, alone));
  std::string text;
  if (graphs.front().channels.front().in != topo::kNone) {
    text +=
        xml_comment("NICs are numbered for NCCL_IB_HCA=" + nccl_hca(topology, nccl_nets(topology)) +
                    " NCCL_IB_MERGE_NICS=0");
    if (may_span_hosts_by_nvlink(topology)) text += xml_comment("for NCCL_MNNVL_ENABLE=0");
    text += xml_comment("for programs whose communicators all have all GPUs of each host");
  } else {
    text += xml_comment("for programs whose communicators all have all GPUs of this one host");
  }
  return text + nccl_graph_xml(topology, graphs);
}

Result<std::string> explain_nccl_text(const Topology& topology, bool alone,
                                      const std::vector<NcclGraph>* dumped,
                                      const std::string& source) {
  const auto graphs = GDRX_TRY(our_nccl_graphs(topology, alone));
  topo::ExpectedGraph expected;
  std::string whose = "NCCL, expected";
  if (dumped == nullptr) {
    expected = GDRX_TRY(expected_nccl_ring(topology, alone));
  } else {
    const auto ring = std::find_if(dumped->begin(), dumped->end(), [](const NcclGraph& graph) {
      return graph.id == topo::kNcclRing;
    });
    if (ring == dumped->end()) return fail(Errc::invalid_argument, source + ": no ring in it");
    const bool ours = graphs.front().channels.front().in == topo::kNone;
    const bool theirs = ring->channels.empty() ? ours : ring->channels.front().in == topo::kNone;
    if (theirs != ours) {
      return fail(Errc::invalid_argument,
                  source + (theirs ? ": its channels have no NIC, so its job was of one host: say "
                                     "--one-host"
                                   : ": its channels have NICs, so its job was of several hosts"));
    }
    expected.ring = *ring;
    whose = "NCCL, by the file";
  }
  Table table({"ring", "channels", "GB/s each", "GB/s all", "GPU-GPU", "GPU-NIC"});
  table.add(summary("gdrx", graphs.front(), topology.gpus().size()));
  table.add(summary(whose, expected.ring, topology.gpus().size()));
  std::string text = fmt::format(
      "{}: {} GPU{}, for jobs of {}\n\n", topology.source(), topology.gpus().size(),
      topology.gpus().size() == 1 ? "" : "s",
      graphs.front().channels.front().in == topo::kNone ? "this host alone" : "several hosts");
  if (graphs.front().channels.front().in != topo::kNone) {
    text.insert(text.size() - 1, "with the NICs of NCCL_IB_HCA as --format env has it\n");
  }
  text += table.print(0) + "\n" + side_by_side(topology, graphs.front(), expected.ring);
  std::string why;
  for (const std::string& line : differences(graphs.front(), expected.ring)) {
    why += wrapped("  " + line, 4) + "\n";
  }
  const bool known =
      !expected.ring.channels.empty() && !expected.ring.channels.front().gpus.empty();
  if (!why.empty()) text += "\nwhy they differ\n" + why;
  if (why.empty() && known) text += "\nthey do not differ in what is shown\n";
  if (dumped != nullptr) return text;
  expected.notes.emplace_back(
      "other rates between sockets than 10 GB/s, which the CPU's model sets");
  expected.notes.emplace_back(
      "NVLS, CollNet, NCCL_* variables but NCCL_IB_HCA, NICs that NCCL merges");
  if (!alone) expected.notes.emplace_back("NVLink between hosts, and NICs that it leaves idle");
  expected.notes.emplace_back("the channels that NCCL doubles when it connects");
  expected.notes.emplace_back("what Intel's CPUs lose between their PCIe ports");
  text += "\nnot modelled\n";
  for (const std::string& note : expected.notes) text += wrapped("  " + note, 4) + "\n";
  return text + "NCCL's own: NCCL_GRAPH_DUMP_FILE, then --nccl-graph FILE\n";
}

}  // namespace gdrx::tools
