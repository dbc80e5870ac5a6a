// SPDX-License-Identifier: Apache-2.0
#include "tools/cluster/cluster.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <type_traits>

#include "tools/cluster/remote_launch.hpp"
#include "tools/doctor/doctor_view.hpp"
#include "tools/support.hpp"

namespace gdrx::tools {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFile = std::size_t{16} << 20;
constexpr const char* kModule = "libgdrx-gather-mpi.so";

using Take = void (*)(int, const char*, int, void*);

/// MPI, from a module: begun once, ended with the object.
class Mpi {
 public:
  static Result<std::unique_ptr<Mpi>> begin();
  ~Mpi() {
    if (begun_) end_();
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  std::size_t rank() const { return static_cast<std::size_t>(rank_); }
  Result<std::vector<std::string>> all_gather(const std::string& mine) const {
    std::vector<std::string> all;
    const Take take = [](int, const char* text, int bytes, void* user) {
      static_cast<std::vector<std::string>*>(user)->emplace_back(text,
                                                                 static_cast<std::size_t>(bytes));
    };
    if (gather_(mine.data(), static_cast<int>(mine.size()), take, &all) != 0) {
      return fail(Errc::system, "MPI could not gather");
    }
    return all;
  }

 private:
  Mpi() = default;
  int (*begin_)(int*) = nullptr;
  int (*gather_)(const char*, int, Take, void*) = nullptr;
  void (*end_)() = nullptr;
  int rank_ = 0;
  bool begun_ = false;
};

fs::path own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

Result<void*> load_module() {
  const std::string folder = environment_value("GDRX_MODULE_PATH");
  const fs::path beside = own_program().parent_path();
  for (const fs::path& place : {fs::path(folder) / kModule, beside / "../lib" / kModule,
                                beside / "../lib64" / kModule, fs::path(kModule)}) {
    // Global: Open MPI's components look for its symbols in the process.
    void* module = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module != nullptr) return module;
  }
  return fail(Errc::unsupported,
              fmt::format("{} cannot be loaded: without MPI name the hosts (--hosts)", kModule));
}

Result<std::unique_ptr<Mpi>> Mpi::begin() {
  void* module = GDRX_TRY(load_module());
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(module, name));
    return function != nullptr;
  };
  std::unique_ptr<Mpi> mpi(new Mpi);
  if (!find(mpi->begin_, "gdrx_mpi_begin_v1") || !find(mpi->gather_, "gdrx_mpi_all_gather_v1") ||
      !find(mpi->end_, "gdrx_mpi_end_v1")) {
    return fail(Errc::unsupported, fmt::format("{} is of another gdrx version", kModule));
  }
  if (mpi->begin_(&mpi->rank_) != 0) return fail(Errc::system, "MPI_Init failed");
  mpi->begun_ = true;
  return mpi;
}

// Ranks of one machine may believe to be on several: GDRX_HOST_ID, as for the library.
std::string host_name() {
  if (std::string told = environment_value("GDRX_HOST_ID"); !told.empty()) return told;
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

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
  const auto mpi = GDRX_TRY(Mpi::begin());
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
