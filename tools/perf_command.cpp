// SPDX-License-Identifier: Apache-2.0
// gdrx perf.
#include <fmt/format.h>

#include <memory>

#include "tools/commands.hpp"
#include "tools/perf/p2p_view.hpp"
#include "tools/units.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  gdrx perf --p2p                        what the GPUs of this host reach of each other\n"
    "Exit status: 0, 1 if something cannot be measured, 2 for bad usage.\n";

struct Options {
  bool p2p = false;
  std::string size;
  int iterations = 0;
  std::string format = "text";
};

void run_p2p(const Options& options) {
  constexpr std::size_t kMost = std::size_t{16} << 30;
  perf::P2pOptions p2p;
  if (!options.size.empty()) {
    p2p.bytes = value_or_fail(parse_size("--size", options.size)) / 4096 * 4096;
  }
  if (p2p.bytes < (std::size_t{1} << 20) || p2p.bytes > kMost) {
    throw Failure{kBadUsage, "--size: 1 MiB to 16 GiB"};
  }
  if (options.iterations > 0) p2p.iterations = options.iterations;
  const perf::P2pReport report = value_or_fail(perf::measure_p2p(p2p), kFailed);
  const topo::Topology topology = value_or_fail(topo::discover({}), kFailed);
  fmt::print("{}", options.format == "json" ? perf::p2p_json(report, topology)
                                            : perf::p2p_text(report, topology));
  for (const auto& row : report.pairs) {
    for (const perf::P2pPair& pair : row) {
      if (!pair.problem.empty()) throw Failure{kFailed, pair.problem};
    }
  }
}

}  // namespace

void add_perf(CLI::App& app) {
  auto* command = app.add_subcommand("perf", "how fast memory is reached: by GPUs, by NICs");
  auto options = std::make_shared<Options>();
  command->add_flag("--p2p", options->p2p, "GPUs of this host among each other, not a NIC")
      ->required();
  command->add_option("-s,--size", options->size, "bytes of a transfer: 64K, 1M, 256M");
  command->add_option("-n,--iters", options->iterations, "transfers of each kind")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(kExamples);
  command->callback([options] { run_p2p(*options); });
}

}  // namespace gdrx::tools
