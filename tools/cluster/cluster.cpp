// SPDX-License-Identifier: Apache-2.0
#include "tools/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tools/cluster/mpi.hpp"
#include "tools/cluster/remote_launch.hpp"
#include "tools/doctor/doctor_view.hpp"
#include "tools/support.hpp"

namespace gdrx::tools {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFile = std::size_t{16} << 20;
// A rank's text is its host's name, a line's end, its report.
HostReport rank_report(std::size_t rank, const std::string& text) {
  const auto end = std::min(text.find('\n'), text.size());
  HostReport one{text.substr(0, end), {}, {}};
  auto report = parse_doctor_json(std::string_view(text).substr(std::min(end + 1, text.size())));
  if (report) one.report = *std::move(report);
  if (!report) one.problem = fmt::format("rank {}: {}", rank, report.error().what);
  return one;
}

// One rank of a host speaks for it.
std::vector<HostReport> heard_of(const std::vector<std::string>& texts) {
  std::vector<HostReport> reports;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    HostReport one = rank_report(rank, texts[rank]);
    const bool known = std::any_of(reports.begin(), reports.end(),
                                   [&](const HostReport& other) { return other.host == one.host; });
    if (!known) reports.push_back(std::move(one));
  }
  return reports;
}

Result<std::vector<HostReport>> saved_reports(const std::vector<std::string>& names) {
  std::vector<HostReport> reports;
  for (const std::string& name : names) {
    const std::string text = GDRX_TRY(read_input(name, kMostFile));
    auto report = parse_doctor_json(text);
    if (!report) return fail(report.error().code, name + ": " + report.error().what);
    reports.push_back({fs::path(name).stem().string(), *std::move(report), {}});
  }
  return reports;
}

Result<std::vector<HostReport>> remote_reports(const ClusterOptions& options) {
  if (!options.saved.empty()) return saved_reports(options.saved);
  std::string names = options.hosts;
  if (!options.hostfile.empty()) names = GDRX_TRY(read_input(options.hostfile, kMostFile));
  LaunchOptions launch;
  if (!options.launcher.empty()) launch.launcher = options.launcher;
  launch.deadline = std::chrono::seconds(options.deadline);
  launch.command = {own_program().string(), "doctor", "--format", "json"};
  if (options.no_proof) launch.command.emplace_back("--no-proof");
  return run_on_hosts(GDRX_TRY(parse_hosts(names)), launch);
}

Result<std::optional<Comparison>> by_mpi(const ClusterOptions& options, const doctor::Report& own) {
  const auto mpi = GDRX_TRY(Mpi::begin("without MPI name the hosts (--hosts)"));
  const auto texts = GDRX_TRY(mpi->all_gather(host_name() + "\n" + doctor_json(own)));
  const std::vector<HostReport> reports = heard_of(texts);
  std::vector<perf::Reached> reached;
  // With several ranks on a host a NIC would try to reach its own host: not what is asked.
  if (!options.no_proof && reports.size() == texts.size()) {
    reached = GDRX_TRY(perf::reach_here(
        mpi->rank(), [&](const std::string& mine) { return mpi->all_gather(mine); }));
  }
  if (mpi->rank() > 0) return std::optional<Comparison>();
  return std::optional<Comparison>(compare(reports, reached));
}

}  // namespace

Result<std::optional<Comparison>> cluster(const ClusterOptions& options,
                                          const doctor::Report& own) {
  if (!options.hosts.empty() || !options.hostfile.empty() || !options.saved.empty()) {
    return std::optional<Comparison>(compare(GDRX_TRY(remote_reports(options))));
  }
  if (!under_mpi()) {
    return fail(Errc::invalid_argument,
                "--cluster: start it with mpirun, one rank a host, or name hosts (--hosts)");
  }
  return by_mpi(options, own);
}

}  // namespace gdrx::tools
