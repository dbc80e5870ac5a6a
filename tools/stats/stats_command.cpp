// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>

#include "plugin/stats/prometheus.hpp"
#include "tools/commands.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kStatsExamples =
    "Examples:\n"
    "  gdrx stats          processes of this host that use the NCCL net plugin\n"
    "  gdrx stats 1234     counters of one, in Prometheus' text format\n"
    "  gdrx stats 1234.1   another container's process of that number\n"
    "A process that hangs can be asked, too, and one that has crashed until its file is removed.";

void list() {
  for (const std::string& name : stats::processes("/dev/shm")) {
    const auto [pid, again] = *stats::process_of(name);
    const std::string path = stats::page_path(pid, again);
    fmt::print("{}{}\n", name, stats::lives(path) ? "" : "  (has ended: remove " + path + ")");
  }
}

}  // namespace

void add_stats(CLI::App& app) {
  auto* command =
      app.add_subcommand("stats", "counters of a process that uses the NCCL net plugin");
  command->footer(kStatsExamples);
  auto process = std::make_shared<std::string>();
  command->add_option("process", *process, "its number; without it: which there are")
      ->check([](const std::string& text) {
        return stats::process_of(text) ? std::string() : text + " is no process, as 1234 or 1234.1";
      });
  command->callback([process] {
    if (process->empty()) return list();
    const auto [pid, again] = *stats::process_of(*process);
    const auto page = value_or_fail(stats::open_page(stats::page_path(pid, again)), kFailed);
    fmt::print("{}", stats::prometheus(*page));
  });
}

}  // namespace gdrx::tools
