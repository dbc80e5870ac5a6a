// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "plugin/stats/prometheus.hpp"
#include "tools/commands.hpp"

namespace gdrx::tools {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  gdrx stats          processes of this host that use the NCCL net plugin\n"
    "  gdrx stats 1234     counters of one, in Prometheus' text format\n"
    "A process that hangs can be asked, too, and one that has crashed until its file is removed.";

void list() {
  for (const int pid : stats::processes("/dev/shm")) {
    const bool lives = kill(pid, 0) == 0 || errno == EPERM;
    fmt::print("{}{}\n", pid, lives ? "" : "  (has ended: remove " + stats::page_path(pid) + ")");
  }
}

}  // namespace

void add_stats(CLI::App& app) {
  auto* command =
      app.add_subcommand("stats", "counters of a process that uses the NCCL net plugin");
  command->footer(kExamples);
  auto* pid = command->add_option("pid", "of the process; without it: which there are");
  pid->check(CLI::PositiveNumber);
  command->callback([pid] {
    if (pid->count() == 0) return list();
    const auto page = value_or_fail(stats::open_page(stats::page_path(pid->as<int>())), kFailed);
    fmt::print("{}", stats::prometheus(*page));
  });
}

}  // namespace gdrx::tools
