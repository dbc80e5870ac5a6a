// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each adds itself to the app with what it does when chosen: a callback that
// prints to stdout and throws Failure for an error.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "gdrx/result.hpp"

namespace gdrx::tools {

/// Exit statuses: scripts depend on them.
inline constexpr int kFailed = 1;    // asked for something that failed, or does not hold
inline constexpr int kBadUsage = 2;  // the command line makes no sense

struct Failure {
  int status;
  std::string line;
};

/// The value, or the error as a Failure: CLI11's callbacks return nothing.
template <class T>
T value_or_fail(Result<T> result, int status = kBadUsage) {
  if (!result) throw Failure{status, describe(result.error())};
  return gdrx::detail::take(std::move(result));
}

void add_config(CLI::App& app);
void add_doctor(CLI::App& app);
void add_mpirun(CLI::App& app);
void add_perf(CLI::App& app);
void add_plan(CLI::App& app);
void add_run(CLI::App& app);
void add_snapshot(CLI::App& app);
void add_stats(CLI::App& app);
void add_topo(CLI::App& app);
void add_tune(CLI::App& app);

/// `gdrx run` with these words: this process becomes the launcher, or a rank's program.
[[noreturn]] void run(const std::vector<std::string>& words);

}  // namespace gdrx::tools
