// SPDX-License-Identifier: Apache-2.0
#include "tools/cluster/mpi.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "tools/support.hpp"

namespace gdrx::tools {
namespace {

namespace fs = std::filesystem;
constexpr const char* kModule = "libgdrx-gather-mpi.so";

Result<void*> load_module(const std::string& otherwise) {
  const std::string folder = environment_value("GDRX_MODULE_PATH");
  const fs::path beside = own_program().parent_path();
  for (const fs::path& place : {fs::path(folder) / kModule, beside / "../lib" / kModule,
                                beside / "../lib64" / kModule, fs::path(kModule)}) {
    // Global: Open MPI's components look for its symbols in the process.
    void* module = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (module != nullptr) return module;
  }
  return fail(Errc::unsupported, fmt::format("{} cannot be loaded: {}", kModule, otherwise));
}

}  // namespace

fs::path own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

bool under_mpi() {
  constexpr std::array kVariables{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"};
  return std::any_of(kVariables.begin(), kVariables.end(),
                     [](const char* name) { return !environment_value(name).empty(); });
}

Mpi::~Mpi() {
  if (begun_) end_();
}

Result<std::vector<std::string>> Mpi::all_gather(const std::string& mine) const {
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

Result<std::unique_ptr<Mpi>> Mpi::begin(const std::string& otherwise) {
  void* module = GDRX_TRY(load_module(otherwise));
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

std::string host_name() {
  if (std::string told = environment_value("GDRX_HOST_ID"); !told.empty()) return told;
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace gdrx::tools
