// SPDX-License-Identifier: Apache-2.0
// gdrx topo.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "base/cpu_list.hpp"
#include "gdrx/snapshot.hpp"
#include "tools/commands.hpp"
#include "tools/perf/matrix_view.hpp"
#include "tools/place/here.hpp"
#include "tools/place/hosts_view.hpp"
#include "tools/place/place_view.hpp"
#include "tools/support.hpp"
#include "tools/topo/nccl_view.hpp"
#include "tools/topo/topo_view.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kTopoExamples =
    "Examples:\n"
    "  gdrx topo                                    this host, as nvidia-smi topo -m shows it\n"
    "  gdrx topo --map                              each GPU's nearest NICs, and why\n"
    "  gdrx topo --explain GPU0 mlx5_2              the path, hop by hop, with its bottleneck\n"
    "  gdrx topo host.xml --format html > host.html a picture of another host\n"
    "  gdrx topo --cluster '2 hosts x 8 H200' --format env\n"
    "  gdrx topo --place                            each rank's GPU, NIC and cores, and why\n"
    "  gdrx topo --place --ranks 4 --format srun    the same for a launcher\n"
    "  gdrx topo --place --matrix m.json            hosts in the order of the fastest ring\n"
    "  gdrx topo --explain-nccl                     NCCL's ring beside gdrx's\n"
    "NCCL applies NCCL_GRAPH_FILE (nccl-graph) to every communicator: it is only for programs\n"
    "whose communicators all have all GPUs of each host, with NCCL_IB_HCA by --format env.\n"
    "Exit status: 0, 1 if a source cannot be read or a device is not there, 2 for bad usage.\n";

constexpr std::size_t kMostSource = std::size_t{64} << 20;
constexpr std::size_t kMostMatrix = std::size_t{128} << 20;  // of a thousand hosts it is 100 MB

struct TopoOptions {
  std::string source;
  std::string cluster;
  std::string format = "text";
  std::string move;
  std::pair<std::string, std::string> explain;
  bool pci_only = false;
  bool map = false;
  bool place = false;
  bool predict = false;
  topo::PlaceRequest wish;
  std::string cpus;
  std::optional<std::string> gpus;
  std::string matrix;
  std::string nccl_graph;  // a file
  bool explain_nccl = false;
  bool alone = false;
};

struct Loaded {
  topo::Topology topology;
  int hosts = 1;
};

Result<Loaded> load(const TopoOptions& options) {
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

TextStyle style_of(const TopoOptions& options) {
  TextStyle style;
  style.pci_only = options.pci_only;
  const Terminal shown = terminal();
  style.colour = shown.colour;
  if (shown.columns > 0) style.columns = static_cast<decltype(style.columns)>(shown.columns);
  return style;
}

bool is_launchers(std::string_view format) {
  constexpr std::array<std::string_view, 6> kAll{"rankfile", "appfile",  "srun",
                                                 "torchrun", "hostfile", "k8s"};
  return std::find(kAll.begin(), kAll.end(), format) != kAll.end();
}

bool is_here(const TopoOptions& options) {
  return options.source.empty() && options.cluster.empty();
}

// Of the GPUs that are wished those that may be used: numbers count what is present.
Result<std::vector<topo::VisibleGpu>> wished(const topo::Topology& topology,
                                             const std::string& text,
                                             const topo::PlaceRequest& limit, bool here) {
  auto named =
      GDRX_TRY(visible_gpus(topology, text, here ? present_here(topology) : all_gpus(topology)));
  if (!limit.gpus) return named;
  const std::vector<topo::VisibleGpu> asked = named;
  named.clear();
  for (const topo::VisibleGpu& gpu : asked) {
    for (const topo::VisibleGpu& shown : *limit.gpus) {
      const bool same = gpu.gpu == topo::kNone ? gpu.token == shown.token : gpu.gpu == shown.gpu;
      if (same) named.push_back(shown);
    }
  }
  if (named.empty() && !asked.empty()) {
    return fail(Errc::invalid_argument, "none of the GPUs " + text + " may be used here");
  }
  return named;
}

Result<topo::PlaceRequest> request_of(const TopoOptions& options, const topo::Topology& topology) {
  topo::PlaceRequest request;
  if (is_here(options)) request = GDRX_TRY(request_here(topology));
  request.ranks = options.wish.ranks;
  if (!options.cpus.empty()) {
    const std::string both = within(options.cpus, request.cpus);
    if (both.empty()) {
      return fail(Errc::invalid_argument, "none of the CPUs " + options.cpus + " may be used here");
    }
    request.cpus = both;
  }
  if (options.gpus)
    request.gpus = GDRX_TRY(wished(topology, *options.gpus, request, is_here(options)));
  return request;
}

// Without a cluster in words the matrix tells how many hosts there are.
Result<std::optional<MeasuredHosts>> measured(const TopoOptions& options, int hosts) {
  if (options.matrix.empty()) return std::optional<MeasuredHosts>();
  const std::string text = GDRX_TRY(read_input(options.matrix, kMostMatrix));
  const int wanted = options.cluster.empty() ? 0 : hosts;
  return std::optional<MeasuredHosts>(GDRX_TRY(
      measured_hosts(GDRX_TRY(perf::read_matrix(text, options.matrix)), wanted, options.matrix)));
}

Result<std::string> placed(const TopoOptions& options, const topo::Topology& topology, int hosts) {
  topo::PlaceRequest request = GDRX_TRY(request_of(options, topology));
  const std::optional<MeasuredHosts> order = GDRX_TRY(measured(options, hosts));
  request.hosts = order ? static_cast<int>(order->ring.order.size()) : hosts;
  topo::Placement placement = GDRX_TRY(place(topology, request));
  if (order) placement.host_names = names_in_order(*order);
  if (options.format == "json") return place_json(topology, placement, order ? &*order : nullptr);
  if (options.format == "rankfile") return place_rankfile(placement);
  if (options.format == "hostfile") return place_hostfile(placement);
  if (options.format == "appfile") return place_appfile(topology, placement);
  if (options.format == "srun") return place_srun(topology, placement);
  if (options.format == "torchrun") return place_torchrun(topology, placement);
  if (options.format == "k8s") return place_k8s(topology, placement);
  if (options.format != "text") {
    return fail(Errc::invalid_argument, fmt::format("--place has no format {}", options.format));
  }
  std::string shown = place_text(topology, placement);
  if (order) shown += hosts_text(*order, options.matrix);
  return options.predict ? shown + forecast_text(topology, placement) : shown;
}

// A job of one host has no NICs in NCCL's eyes.
Result<std::string> nccl_beside(const TopoOptions& options, const topo::Topology& topology,
                                bool alone) {
  if (options.nccl_graph.empty()) return explain_nccl_text(topology, alone, nullptr, {});
  const std::string text = GDRX_TRY(read_input(options.nccl_graph, kMostSource));
  const auto graphs = GDRX_TRY(parse_nccl_graphs(text, options.nccl_graph, topology));
  return explain_nccl_text(topology, alone, &graphs, options.nccl_graph);
}

// Of two answers one would not be given.
void check_one_answer(const TopoOptions& options) {
  const char* other = nullptr;
  if (options.place) other = "--place";
  if (!options.explain.first.empty()) other = "--explain";
  if (options.map) other = "--map";
  if (options.explain_nccl && other != nullptr) {
    throw Failure{kBadUsage, fmt::format("topo: --explain-nccl excludes {}", other)};
  }
  if (options.explain_nccl && options.format != "text") {
    throw Failure{kBadUsage, fmt::format("topo: --explain-nccl has no format {}", options.format)};
  }
  const bool by_host_name =
      options.format != "srun" && options.format != "torchrun" && options.format != "k8s";
  if (!options.matrix.empty() && !by_host_name) {
    throw Failure{kBadUsage, fmt::format("topo: --format {} has no order of hosts: --matrix does "
                                         "nothing, take --format hostfile",
                                         options.format)};
  }
}

// What would do nothing is refused.
void check(const TopoOptions& options) {
  const bool places = options.place || is_launchers(options.format);
  const char* alone = nullptr;
  if (options.predict) alone = "--predict";
  if (options.wish.ranks != 0) alone = "--ranks";
  if (!options.cpus.empty()) alone = "--cpus";
  if (options.gpus) alone = "--gpus";
  if (!options.matrix.empty()) alone = "--matrix";
  if (!places && alone != nullptr) {
    throw Failure{kBadUsage, fmt::format("topo: {} needs --place", alone)};
  }
  const bool graph = options.explain_nccl || options.format == "nccl-graph";
  if (options.alone && !graph) {
    throw Failure{kBadUsage, "topo: --one-host needs --explain-nccl or --format nccl-graph"};
  }
  if (options.predict && options.format != "text") {
    throw Failure{kBadUsage, fmt::format("topo: --predict has no format {}", options.format)};
  }
}

Result<std::string> answer(const TopoOptions& options) {
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
  if (options.place || is_launchers(options.format)) {
    return placed(options, *topology, loaded.hosts);
  }
  const bool described_alone = !options.cluster.empty() && loaded.hosts == 1;
  const bool alone = options.alone || described_alone;
  if (options.explain_nccl) return nccl_beside(options, *topology, alone);
  if (options.format == "nccl-graph") {
    const bool one_by_one = environment_value("NCCL_MNNVL_ENABLE") == "0";
    return nccl_graph_file(*topology, alone, one_by_one);
  }
  const bool compares = !options.move.empty() && options.format == "text" && !options.map;
  if (compares) return compare_text(loaded.topology, moved);
  if (options.format == "json") return topo_json(*topology);
  if (options.format == "dot") return topo_dot(*topology);
  if (options.format == "svg") return topo_svg(*topology);
  if (options.format == "html") return topo_html(*topology);
  if (options.format == "nccl-xml") return nccl_xml(*topology);
  if (options.format == "env") return env_lines(*topology);
  if (options.map) return map_text(*topology, style);
  std::string text;
  if (loaded.hosts > 1) text = fmt::format("each of {} equal hosts:\n\n", loaded.hosts);
  return text + matrix_text(*topology, style);
}

void add_nccl(CLI::App& command, TopoOptions& options) {
  auto* explain = command.add_flag("--explain-nccl", options.explain_nccl,
                                   "the ring that NCCL is expected to choose beside gdrx's");
  command
      .add_option("--nccl-graph", options.nccl_graph,
                  "with --explain-nccl: what NCCL chose, by its NCCL_GRAPH_DUMP_FILE; checked")
      ->needs(explain);
  command.add_flag("--one-host", options.alone,
                   "with --explain-nccl and --format nccl-graph: for jobs of this host alone");
}

void add_place(CLI::App& command, TopoOptions& options) {
  command.add_flag("--place", options.place, "each rank's GPU, NICs and cores, with the reasons");
  command.add_flag("--predict", options.predict,
                   "with --place: its predicted rates beside those of the same ranks shuffled");
  command
      .add_option("--ranks", options.wish.ranks,
                  "ranks of the job; without it one a GPU, or one a core where there is none")
      ->check(CLI::PositiveNumber);
  command.add_option("--cpus", options.cpus, "place on these CPUs alone: 0-15,32")
      ->check([](const std::string& text) {
        return is_cpu_list(text) ? std::string() : text + " names no CPU, or not CPUs alone";
      });
  command.add_option("--gpus", options.gpus,
                     "place on these GPUs alone, as CUDA_VISIBLE_DEVICES says it");
  command.add_option("--matrix", options.matrix,
                     "hosts in the order of the fastest ring, by gdrx perf --matrix --format json");
}

}  // namespace

void add_topo(CLI::App& app) {
  auto* command = app.add_subcommand("topo", "GPUs, NICs and the paths between them");
  auto options = std::make_shared<TopoOptions>();
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
  add_nccl(*command, *options);
  add_place(*command, *options);
  command
      ->add_option(
          "--format", options->format,
          "text, json, dot, html, svg, nccl-xml, nccl-graph, env; of a placement: text, json, "
          "rankfile, appfile, hostfile, srun, torchrun, k8s")
      ->option_text("TEXT")  // the list is over 80 columns
      ->check(CLI::IsMember({"text", "json", "dot", "html", "svg", "nccl-xml", "nccl-graph", "env",
                             "rankfile", "appfile", "hostfile", "srun", "torchrun", "k8s"}));
  command->footer(kTopoExamples);
  command->callback([options] {
    check_one_answer(*options);
    check(*options);
    fmt::print("{}", value_or_fail(answer(*options), kFailed));
  });
}

}  // namespace gdrx::tools
