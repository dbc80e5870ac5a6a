// SPDX-License-Identifier: Apache-2.0
// gdrx doctor.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "gdrx/snapshot.hpp"
#include "tools/cluster/cluster.hpp"
#include "tools/commands.hpp"
#include "tools/doctor/doctor_view.hpp"
#include "tools/perf/nic_proof.hpp"
#include "tools/support.hpp"

namespace gdrx::tools {
namespace {

constexpr int kSlow = 3;
constexpr std::size_t kMostExpected = std::size_t{16} << 20;
constexpr std::size_t kMostSnapshot = std::size_t{64} << 20;

constexpr const char* kDoctorExamples =
    "Examples:\n"
    "  gdrx doctor                          what keeps GPUDirect RDMA from working well here\n"
    "  sudo gdrx doctor                     the same, with what only root can read (ACS)\n"
    "  gdrx doctor --fix-script fix.sh      the fixes as a script to read; nothing is changed\n"
    "  gdrx doctor --format json > good.json\n"
    "  gdrx doctor --expect good.json       is this host as good as that one was?\n"
    "  gdrx doctor --snapshot FILE          another host, from what `gdrx snapshot` saved there\n"
    "  mpirun -N 1 gdrx doctor --cluster    all hosts, and which is the odd one out\n"
    "  gdrx doctor --cluster --hosts node1,node2\n"
    "  gdrx doctor --compare node1.json node2.json\n"
    "  gdrx doctor --root /tmp/host         a copy of another host's sys/, proc/, dev/, etc/\n"
    "Exit status: 0 if nothing is worse than WARN (OK, UNKNOWN, WARN), 3 if something is SLOW,\n"
    "1 if something FAILs or a file cannot be read, 2 for bad usage. With --expect: 0 if nothing\n"
    "is worse than in the saved report, else 1. With --cluster: 0 if all hosts are alike, 3 if\n"
    "they differ, 1 if one gave no report or a NIC does not reach its peer.\n";

struct DoctorOptions {
  std::string root = "/";
  std::string snapshot;
  std::string format = "text";
  std::string script;
  bool for_other_host = false;
  std::string expect;
  bool no_proof = false;
  bool cluster = false;
  ClusterOptions hosts;
};

std::string shown(const doctor::Report& report, const std::string& format) {
  if (format == "json") return doctor_json(report);
  if (format == "html") return doctor_html(report);
  DoctorStyle style;
  style.colour = terminal().colour;
  return doctor_text(report, style);
}

doctor::Host host_of(const DoctorOptions& options) {
  if (!options.snapshot.empty()) {
    const std::string bytes = value_or_fail(read_input(options.snapshot, kMostSnapshot), kFailed);
    return doctor::host_of(value_or_fail(topo::parse_snapshot(bytes, options.snapshot), kFailed));
  }
  doctor::Host host;
  std::error_code error;
  const bool live = std::filesystem::equivalent(options.root, "/", error);
  host.root = live ? "/" : options.root;
  if (!live) host.probes = doctor::file_probes(host.root);
  if (live && !options.no_proof) host.probes.proofs = perf::prove_here;
  return host;
}

[[noreturn]] void stop(int status, const std::string& line) {
  std::fflush(stdout);  // the report stands before the line that sums it up
  throw Failure{status, line};
}

void run_cluster(const DoctorOptions& options) {
  ClusterOptions hosts = options.hosts;
  hosts.no_proof = options.no_proof;
  const bool remote = !hosts.hosts.empty() || !hosts.hostfile.empty() || !hosts.saved.empty();
  doctor::Report own;
  if (!remote) own = value_or_fail(doctor::diagnose(host_of(options)), kFailed);
  const auto answer = value_or_fail(cluster(hosts, own), kFailed);
  if (!answer) return;
  const Comparison& comparison = *answer;
  fmt::print("{}",
             options.format == "json" ? comparison_json(comparison) : comparison_text(comparison));
  if (!comparison.silent.empty()) {
    stop(kFailed,
         fmt::format("{} of {} hosts gave no report", comparison.silent.size(), comparison.hosts));
  }
  if (!comparison.unreached.empty()) {
    stop(kFailed, fmt::format("{} of {} pairs of NICs do not reach each other",
                              comparison.unreached.size(), comparison.rails));
  }
  if (!comparison.differences.empty()) stop(kSlow, "the hosts differ");
}

bool is_this_host(const DoctorOptions& options) {
  std::error_code error;
  return options.snapshot.empty() && std::filesystem::equivalent(options.root, "/", error);
}

void run(const DoctorOptions& options) {
  if (!options.script.empty() && !options.for_other_host && !is_this_host(options)) {
    throw Failure{kFailed,
                  "these fixes are another host's, and a script of them is made to be run as root: "
                  "--for-other-host writes it all the same"};
  }
  if (options.cluster || !options.hosts.saved.empty()) return run_cluster(options);
  doctor::Report saved;
  if (!options.expect.empty()) {
    saved = value_or_fail(
        parse_doctor_json(value_or_fail(read_input(options.expect, kMostExpected), kFailed)),
        kFailed);
  }
  const doctor::Host host = host_of(options);
  const doctor::Report report = value_or_fail(doctor::diagnose(host), kFailed);
  if (!options.script.empty()) {
    value_or_fail(write_output(options.script, doctor_script(report, options.for_other_host)),
                  kFailed);
  }
  fmt::print("{}", shown(report, options.format));
  if (!options.expect.empty()) {
    const auto worse = doctor_worse(saved, report);
    std::fflush(stdout);
    for (const std::string& line : worse) fmt::print(stderr, "gdrx: {}\n", line);
    if (!worse.empty()) {
      stop(kFailed, fmt::format("{} findings are worse than in {}", worse.size(), options.expect));
    }
    return;
  }
  const doctor::Severity severity = worst(report);
  if (severity == doctor::Severity::fail) {
    stop(kFailed, "FAIL: " + doctor_ids(report, severity));
  }
  if (severity == doctor::Severity::slow) stop(kSlow, "SLOW: " + doctor_ids(report, severity));
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto* command = app.add_subcommand("doctor", "does GPUDirect RDMA work here, and how well");
  auto options = std::make_shared<DoctorOptions>();
  auto* root = command->add_option("--root", options->root,
                                   "a folder with another host's sys/, proc/, dev/ and etc/");
  command->add_option("--snapshot", options->snapshot, "another host's snapshot (gdrx snapshot)")
      ->excludes(root);
  command->add_option("--format", options->format, "text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->capture_default_str();
  command->add_flag("--no-proof", options->no_proof,
                    "register and move no memory: files and questions only");
  auto* cluster =
      command->add_flag("--cluster", options->cluster,
                        "all hosts, and what is not the same on each: under mpirun with "
                        "a rank a host, or with --hosts");
  command->add_option("--hosts", options->hosts.hosts, "with --cluster: node1,node2,...")
      ->needs(cluster);
  command->add_option("--hostfile", options->hosts.hostfile, "with --cluster: a host in each line")
      ->needs(cluster);
  command
      ->add_option("--launcher", options->hosts.launcher,
                   "with --cluster: how a host is reached; default: ssh -o BatchMode=yes {host}")
      ->needs(cluster);
  command->add_option("--deadline", options->hosts.deadline, "with --cluster: seconds for a host")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  command->add_option("--compare", options->hosts.saved, "saved JSON reports, beside each other");
  auto* script = command->add_option("--fix-script", options->script,
                                     "write the fixes to a script; it is not run");
  command
      ->add_flag("--for-other-host", options->for_other_host,
                 "with --fix-script: even of a snapshot or a copy, whose names others chose")
      ->needs(script);
  command->add_option("--expect", options->expect,
                      "a saved JSON report: fail if something is worse now");
  command->footer(kDoctorExamples);
  command->callback([options] { run(*options); });
}

}  // namespace gdrx::tools
