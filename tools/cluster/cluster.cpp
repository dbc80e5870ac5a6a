// SPDX-License-Identifier: Apache-2.0
#include "tools/cluster/cluster.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "tools/cluster/launch.hpp"
#include "tools/doctor/view.hpp"
#include "tools/support.hpp"

namespace gdrx::tools {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFile = std::size_t{16} << 20;
constexpr const char* kModule = "libgdrx-gather-mpi.so";

using Take = void (*)(int, const char*, int, void*);
using Gather = int (*)(const char*, int, Take, void*);

fs::path own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

Result<Gather> load_gather() {
  const std::string folder = environment_value("GDRX_MODULE_PATH");
  const fs::path beside = own_program().parent_path();
  void* module = nullptr;
  for (const fs::path& place : {fs::path(folder) / kModule, beside / "../lib" / kModule,
                                beside / "../lib64" / kModule, fs::path(kModule)}) {
    // Global: Open MPI's components look for its symbols in the process.
    if (module == nullptr) module = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
  if (module == nullptr) {
    return fail(Errc::unsupported,
                fmt::format("{} cannot be loaded: without MPI name the hosts (--hosts)", kModule));
  }
  auto* gather = reinterpret_cast<Gather>(dlsym(module, "gdrx_mpi_gather_v1"));
  if (gather == nullptr) {
    return fail(Errc::unsupported, fmt::format("{} is of another gdrx version", kModule));
  }
  return gather;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

// A rank's text is its host's name, a line's end, its report.
void take(int rank, const char* text, int bytes, void* user) {
  auto& reports = *static_cast<std::vector<HostReport>*>(user);
  const std::string_view all(text, static_cast<std::size_t>(bytes));
  const auto end = std::min(all.find('\n'), all.size());
  HostReport one{std::string(all.substr(0, end)), {}, {}};
  const bool known = std::any_of(reports.begin(), reports.end(),
                                 [&](const HostReport& other) { return other.host == one.host; });
  if (known) return;  // one rank of a host speaks for it
  auto report = parse_doctor_json(all.substr(std::min(end + 1, all.size())));
  if (report) one.report = *std::move(report);
  if (!report) one.problem = fmt::format("rank {}: {}", rank, report.error().what);
  reports.push_back(std::move(one));
}

bool under_mpi() {
  constexpr std::array kVariables{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"};
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [](const char* name) { return !environment_value(name).empty(); });
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

}  // namespace

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

Result<std::optional<std::vector<HostReport>>> cluster_reports(const ClusterOptions& options,
                                                               const doctor::Report& own) {
  if (!options.hosts.empty() || !options.hostfile.empty() || !options.saved.empty()) {
    return GDRX_TRY(remote_reports(options));
  }
  if (!under_mpi()) {
    return fail(Errc::invalid_argument,
                "--cluster: start it with mpirun, one rank a host, or name hosts (--hosts)");
  }
  const Gather gather = GDRX_TRY(load_gather());
  const std::string text = host_name() + "\n" + doctor_json(own);
  std::vector<HostReport> reports;
  const int rank = gather(text.data(), static_cast<int>(text.size()), take, &reports);
  if (rank < 0) return fail(Errc::system, "MPI could not gather the reports");
  if (rank > 0) return std::optional<std::vector<HostReport>>();
  return reports;
}

}  // namespace gdrx::tools
