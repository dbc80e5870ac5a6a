// SPDX-License-Identifier: Apache-2.0
// net_conformance PLUGIN: does it keep the rules that NCCL demands of a network plugin?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "net-conformance/bench/bench_command.hpp"
#include "net-conformance/bench/pump.hpp"
#include "net-conformance/driver/peer.hpp"
#include "net-conformance/driver/session.hpp"
#include "net-conformance/rules/common.hpp"
#include "net-conformance/suite/report.hpp"
#include "net-conformance/suite/runner.hpp"

namespace gdrx::conformance {
namespace {

struct Arguments {
  RunOptions run;
  std::vector<std::string> rules;
  std::vector<std::string> skipped;
  bool list = false;
  bool quiet = false;
  bool strict = false;
  int limit_s = 30;
  int at_once_ms = 1000;
  int patience_s = 8;
  std::string json;
  std::string versions = "newest";
  bool bench_mode = false;
  int serve_peers = 0;
  BenchCommand bench;
  int nap_us = 0;
  std::string sizes = "8,1K,8K,64K,512K,4M";
};

/// A rule is named by its id or by the part before the dot.
bool named(const Rule& rule, const std::vector<std::string>& names) {
  const std::string id = rule.id;
  return std::ranges::any_of(
      names, [&](const std::string& name) { return id == name || id.starts_with(name + "."); });
}

std::vector<Rule> chosen(const Arguments& arguments) {
  std::vector<Rule> rules = all_rules();
  std::erase_if(rules, [&](const Rule& rule) {
    return (!arguments.rules.empty() && !named(rule, arguments.rules)) ||
           named(rule, arguments.skipped);
  });
  return rules;
}

int list(const std::vector<Rule>& rules, bool as_json) {
  if (as_json) {
    nlohmann::json all = nlohmann::json::array();
    for (const Rule& rule : rules) {
      all.push_back(to_json(rule));
    }
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  for (const Rule& rule : rules) {
    fmt::print("{:<28}{:<7}{}\n{:<35}NCCL: {}\n", rule.id, to_string(rule.severity), rule.demand,
               "", rule.consequence);
  }
  return 0;
}

std::vector<int> versions_of(const std::string& text) {
  if (text == "newest") {
    return {0};
  }
  if (text == "all") {
    std::vector<int> all;
    for (int version = kNewest; version >= kOldest; --version) all.push_back(version);
    return all;
  }
  return {std::stoi(text)};
}

int check(const Arguments& arguments, const std::vector<Rule>& rules) {
  nlohmann::json runs = nlohmann::json::array();
  std::size_t failed = 0;
  for (const int version : versions_of(arguments.versions)) {
    RunOptions options = arguments.run;
    options.plugin.version = version;
    if (!arguments.quiet && version != 0) {
      fmt::print("ABI v{}\n", version);
    }
    const auto findings = run(rules, options, [&](const Finding& finding) {
      if (!arguments.quiet || finding.verdict == Verdict::fail) {
        fmt::print("{}\n", describe(finding));
        std::fflush(stdout);
      }
    });
    fmt::print("{}\n", summary(findings));
    std::fflush(stdout);
    failed += failures(findings, arguments.strict);
    nlohmann::json results = nlohmann::json::array();
    for (const Finding& finding : findings) {
      results.push_back(to_json(finding));
    }
    runs.push_back({{"plugin", options.plugin.plugin}, {"abi", version}, {"rules", results}});
  }
  if (!arguments.json.empty()) {
    std::ofstream file(arguments.json);
    file << runs.dump(2) << '\n';
    if (!file.flush()) {
      fmt::print(stderr, "net_conformance: cannot write {}\n", arguments.json);
      return 2;
    }
  }
  return failed == 0 ? 0 : 1;
}

int serve_others(const Arguments& arguments) {
  constexpr std::chrono::minutes kIdle{2};
  const auto served = serve_peers(arguments.serve_peers, kIdle, arguments.run.plugin,
                                  [](const char* id, Session& session) {
                                    for (const Rule& rule : all_rules()) {
                                      if (std::string(rule.id) == id) {
                                        static_cast<void>(rule.check(session));
                                      }
                                    }
                                  });
  if (!served) {
    fmt::print(stderr, "net_conformance: {}\n", describe(served.error()));
  }
  return served ? 0 : 1;
}

int measure(const Arguments& arguments) {
  BenchCommand command = arguments.bench;
  const auto sizes = parse_sizes(arguments.sizes);
  if (!sizes) {
    fmt::print(stderr, "net_conformance: {}\n", describe(sizes.error()));
    return 2;
  }
  command.options.sizes = *sizes;
  command.options.nap = std::chrono::microseconds(arguments.nap_us);
  command.plugin = arguments.run.plugin;
  command.plugin.version = versions_of(arguments.versions).front();
  command.json = arguments.json;
  return run_bench(command);
}

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("plugin", arguments.run.plugin.plugin, "The library, as dlopen takes it");
  app.add_flag("--list", arguments.list, "Say what the rules are");
  app.add_option("--rule", arguments.rules, "Only these: an id, or the part before its dot")
      ->allow_extra_args(false);
  app.add_option("--skip", arguments.skipped, "Not these, named likewise")->allow_extra_args(false);
  std::vector<std::string> versions{"newest", "all"};
  for (int version = kOldest; version <= kNewest; ++version) {
    versions.push_back(std::to_string(version));
  }
  app.add_option("--abi", arguments.versions,
                 fmt::format("{} to {}, newest or all", kOldest, kNewest))
      ->check(CLI::IsMember(versions))
      ->capture_default_str();
  app.add_option("--device", arguments.run.plugin.device, "Index of the device")
      ->capture_default_str();
  app.add_option("--json", arguments.json,
                 "Write the findings to this file (with --list: any word)");
  app.add_flag("--strict", arguments.strict, "Advice counts as a failure");
  app.add_flag("--quiet", arguments.quiet, "Say only what does not hold");
  app.add_option("--limit", arguments.limit_s, "Seconds after which a rule counts as hung")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--patience", arguments.patience_s,
                 "Seconds in which what has to come to an end does, within a rule")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--at-once", arguments.at_once_ms,
                 "Milliseconds that a call which does not block may take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--apart", arguments.run.plugin.apart,
               "What listens is another communicator of NCCL's: no loop, the network carries it");
  app.add_option("--peer", arguments.run.plugin.peer,
                 "HOST:PORT where second processes run (net_conformance --serve-peers PORT)");
  app.add_option("--serve-peers", arguments.serve_peers,
                 "Run second processes for a suite on another host, until idle for two minutes")
      ->check(CLI::Range(1, 65535));
  app.add_flag("--in-process", arguments.run.in_process,
               "No process for each rule: for a debugger");
}

void add_bench_options(CLI::App& app, Arguments& arguments) {
  BenchCommand& bench = arguments.bench;
  app.add_flag("--bench", arguments.bench_mode, "Measure instead: latency, bandwidth, CPU time")
      ->excludes("--list")
      ->excludes("--peer")
      ->excludes("--rule");
  app.add_option("--sizes", arguments.sizes, "Bytes of a message, with K or M")
      ->capture_default_str();
  app.add_option("--window", bench.options.window, "Messages under way")
      ->check(CLI::Range(1, static_cast<int>(kMostWindow)))
      ->capture_default_str();
  app.add_option("--scale", bench.options.scale, "Times as many messages")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  app.add_flag("!--no-latency", bench.options.latency, "Bandwidth alone");
  app.add_flag(
      "--same-buffer", bench.options.same_buffer,
      "All messages from and into the same bytes, as perftest does: they stay in the cache");
  app.add_option(
         "--nap", arguments.nap_us,
         "Microseconds that this process sleeps when nothing moves in the test of bandwidth; "
         "0: it polls, as NCCL does")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  auto* serve = app.add_option("--serve", bench.serve, "The other process dials this port")
                    ->check(CLI::Range(1, 65535));
  app.add_option("--dial", bench.dial, "HOST:PORT where the other process serves")->excludes(serve);
}

int main_of(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{
      "Checks an NCCL network plugin (libnccl-net-*.so) against what NCCL demands of it.\n"
      "Exit status: 0 all rules hold, 1 some do not, 2 the command is wrong."};
  add_options(app, arguments);
  add_bench_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  arguments.run.limit = std::chrono::seconds(arguments.limit_s);
  g_patience = std::chrono::seconds(arguments.patience_s);
  g_at_once = std::chrono::milliseconds(arguments.at_once_ms);
  const std::vector<Rule> rules = chosen(arguments);
  if (rules.empty()) {
    fmt::print(stderr, "net_conformance: no such rule; --list says which there are\n");
    return 2;
  }
  if (arguments.list) {
    return list(rules, !arguments.json.empty());
  }
  if (arguments.run.plugin.plugin.empty()) {
    fmt::print(stderr, "net_conformance: name a plugin\n");
    return 2;
  }
  if (arguments.serve_peers != 0) {
    return serve_others(arguments);
  }
  return arguments.bench_mode ? measure(arguments) : check(arguments, rules);
}

}  // namespace
}  // namespace gdrx::conformance

int main(int argc, char** argv) { return gdrx::conformance::main_of(argc, argv); }
