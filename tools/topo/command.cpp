// SPDX-License-Identifier: Apache-2.0
// gdrx topo.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>

#include "gdrx/snapshot.hpp"
#include "tools/commands.hpp"
#include "tools/support.hpp"
#include "tools/topo/view.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  gdrx topo                                    this host, as nvidia-smi topo -m shows it\n"
    "  gdrx topo --map                              each GPU's nearest NICs, and why\n"
    "  gdrx topo --explain GPU0 mlx5_2              the path, hop by hop, with its bottleneck\n"
    "  gdrx topo host.xml --format html > host.html a picture of another host\n"
    "  gdrx topo --cluster '2 hosts x 8 H200' --format env\n"
    "Exit status: 0, 1 if a source cannot be read or a device is not there, 2 for bad usage.\n";

constexpr std::size_t kMostSource = std::size_t{64} << 20;

struct Options {
  std::string source;
  std::string cluster;
  std::string format = "text";
  std::string move;
  std::pair<std::string, std::string> explain;
  bool pci_only = false;
  bool map = false;
};

struct Loaded {
  topo::Topology topology;
  int hosts = 1;
};

Result<Loaded> load(const Options& options) {
  if (!options.cluster.empty()) {
    topo::Cluster cluster = GDRX_TRY(topo::parse_cluster(options.cluster));
    return Loaded{std::move(cluster.host), cluster.hosts};
  }
  if (options.source.empty()) return Loaded{GDRX_TRY(topo::discover({})), 1};
  std::error_code error;
  if (std::filesystem::is_directory(options.source, error)) {
    return Loaded{GDRX_TRY(topo::discover({options.source, false})), 1};
  }
  const std::string text = GDRX_TRY(read_input(options.source, kMostSource));
  if (topo::is_snapshot(text)) {
    const topo::Snapshot snapshot = GDRX_TRY(topo::parse_snapshot(text, options.source));
    return Loaded{GDRX_TRY(topo::discover({snapshot.source, false, snapshot.files})), 1};
  }
  return Loaded{GDRX_TRY(topo::parse(text, options.source)), 1};
}

TextStyle style_of(const Options& options) {
  TextStyle style;
  style.pci_only = options.pci_only;
  const Terminal shown = terminal();
  style.colour = shown.colour;
  if (shown.columns > 0) style.columns = static_cast<decltype(style.columns)>(shown.columns);
  return style;
}

Result<std::string> answer(const Options& options) {
  const Loaded loaded = GDRX_TRY(load(options));
  const topo::Topology* topology = &loaded.topology;
  const TextStyle style = style_of(options);
  topo::Topology moved;
  if (!options.move.empty()) {
    moved = GDRX_TRY(what_if(loaded.topology, options.move));
    topology = &moved;
  }
  if (!options.explain.first.empty()) {
    const auto a = GDRX_TRY(topology->find(options.explain.first));
    return explain_text(*topology, a, GDRX_TRY(topology->find(options.explain.second)));
  }
  const bool compares = !options.move.empty() && options.format == "text" && !options.map;
  if (compares) return compare_text(loaded.topology, moved);
  if (options.format == "json") return topo_json(*topology);
  if (options.format == "dot") return topo_dot(*topology);
  if (options.format == "svg") return topo_svg(*topology);
  if (options.format == "html") return topo_html(*topology);
  if (options.format == "nccl-xml") return nccl_xml(*topology);
  if (options.format == "rankfile") return rankfile(*topology, loaded.hosts);
  if (options.format == "env") return env_lines(*topology);
  if (options.map) return map_text(*topology, style);
  std::string text;
  if (loaded.hosts > 1) text = fmt::format("each of {} equal hosts:\n\n", loaded.hosts);
  return text + matrix_text(*topology, style);
}

}  // namespace

void add_topo(CLI::App& app) {
  auto* command = app.add_subcommand("topo", "GPUs, NICs and the paths between them");
  auto options = std::make_shared<Options>();
  auto* source = command->add_option(
      "SOURCE", options->source,
      "an hwloc XML, an NCCL topology XML, a snapshot (gdrx snapshot), or a folder with another "
      "host's sys/ and proc/; without it: this host");
  command->add_option("--snapshot", options->source, "a snapshot: the same as SOURCE")
      ->excludes(source);
  command
      ->add_option("--cluster", options->cluster,
                   "hosts in words: '2 hosts x 8 H200, one 400 Gb/s NIC a GPU'")
      ->excludes(source);
  command->add_flag("--pci", options->pci_only, "hide NVLink, as `nvidia-smi topo -mp` does");
  command->add_flag("--map", options->map, "each GPU's NICs, with the reason");
  command->add_option("--explain", options->explain, "two devices: the path hop by hop");
  command->add_option("--what-if", options->move, "'move mlx5_1 beside GPU3': how the map changes");
  command
      ->add_option("--format", options->format,
                   "text, json, dot, html, svg, nccl-xml, rankfile, env")
      ->check(CLI::IsMember({"text", "json", "dot", "html", "svg", "nccl-xml", "rankfile", "env"}));
  command->footer(kExamples);
  command->callback([options] { fmt::print("{}", value_or_fail(answer(*options), kFailed)); });
}

}  // namespace gdrx::tools
