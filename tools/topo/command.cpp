// SPDX-License-Identifier: Apache-2.0
// gdrx topo.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "gdrx/config.hpp"
#include "tools/command.hpp"
#include "tools/topo/view.hpp"

namespace gdrx::tools {
namespace {

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

Result<std::string> read_file(const std::string& name) {
  constexpr std::streamsize kMost = 64 << 20;
  std::ifstream file(name, std::ios::binary);
  if (!file) return fail(Errc::system, fmt::format("open {}", name), errno);
  std::ostringstream text;
  std::vector<char> block(1 << 16);
  std::streamsize total = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    total += file.gcount();
    if (total > kMost) {
      return fail(Errc::invalid_argument, fmt::format("{}: larger than 64 MiB", name));
    }
    text.write(block.data(), file.gcount());
  }
  return text.str();
}

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
  const std::string text = GDRX_TRY(read_file(options.source));
  return Loaded{GDRX_TRY(topo::parse(text, options.source)), 1};
}

bool has_variable(std::string_view name) {
  for (const std::string& variable : process_environment()) {
    const bool named = variable.starts_with(name) && variable.size() > name.size() + 1 &&
                       variable[name.size()] == '=';
    if (named) return true;
  }
  return false;
}

TextStyle style_of(const Options& options) {
  TextStyle style;
  style.pci_only = options.pci_only;
  if (isatty(STDOUT_FILENO) == 1) {
    winsize window{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) style.columns = window.ws_col;
    style.colour = !has_variable("NO_COLOR");
  }
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

int topo_command(int argc, char** argv) {
  Options options;
  CLI::App app(
      "GPUs, NICs and the paths between them: nvidia-smi's matrix, NCCL's view, the map.\n"
      "Reads this host, or SOURCE: an hwloc XML, an NCCL topology XML, or a folder with\n"
      "another host's sys/ and proc/.",
      "gdrx topo");
  auto* source = app.add_option("SOURCE", options.source, "file or folder; without it: this host");
  app.add_option("--cluster", options.cluster,
                 "hosts in words: '2 hosts x 8 H200, one 400 Gb/s NIC a GPU'")
      ->excludes(source);
  app.add_flag("--pci", options.pci_only, "hide NVLink, as `nvidia-smi topo -mp` does");
  app.add_flag("--map", options.map, "each GPU's NICs, with the reason");
  app.add_option("--explain", options.explain, "two devices: the path hop by hop");
  app.add_option("--what-if", options.move, "'move mlx5_1 beside GPU3': how the map changes");
  app.add_option("--format", options.format, "text, json, dot, html, svg, nccl-xml, rankfile, env")
      ->check(CLI::IsMember({"text", "json", "dot", "html", "svg", "nccl-xml", "rankfile", "env"}));
  if (const auto status = parse_options(app, argc, argv)) return *status;
  const auto text = answer(options);
  if (!text) return report("topo", text.error());
  return std::fputs(text->c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? kFailed : kDone;
}

}  // namespace gdrx::tools
