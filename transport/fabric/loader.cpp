// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <vector>

#include "transport/fabric/module.hpp"

namespace gdrx {
namespace {

namespace fs = std::filesystem;

fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  // A program that was found in PATH has only its name there.
  const fs::path file = fs::path(info.dli_fname).has_parent_path()
                            ? fs::path(info.dli_fname)
                            : fs::read_symlink("/proc/self/exe", error);
  return fs::weakly_canonical(file, error).parent_path();
}

// Beside this code (the library, or a test program in bin/), then beside that.
std::vector<fs::path> places(const Config& config, const std::string& file) {
  if (!config.module_path.empty()) {
    std::vector<fs::path> given;
    std::istringstream folders(config.module_path);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (!folder.empty()) given.push_back(fs::path(folder) / file);
    }
    return given;
  }
  const fs::path here = own_folder();
  return {here / file, here / "gdrx" / file, here.parent_path() / "lib" / file, file};
}

// UCX takes over fatal signals and SIGHUP and reports unused variables when it is loaded, unless
// told otherwise before. What the user has set stays.
void calm_ucx() {
  setenv("UCX_HANDLE_ERRORS", "none", 0);
  setenv("UCX_DEBUG_SIGNO", "0", 0);
  setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 0);
}

}  // namespace

Result<void*> open_module(const Config& config, const std::string& file, const char* needs) {
  // Where GDRX_MODULE_PATH is set, nothing else is looked at.
  std::string reason =
      config.module_path.empty() ? "not found" : "not found in " + config.module_path;
  for (const fs::path& place : places(config, file)) {
    std::error_code error;
    const bool by_linker = !place.has_parent_path();
    if (!by_linker && !fs::exists(place, error)) continue;
    // Never closed: its libraries keep threads and exit handlers.
    void* module = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module != nullptr) return module;
    const char* text = dlerror();
    if (!by_linker && text != nullptr) reason = text;
  }
  const std::string instead =
      config.module_path.empty() ? "set GDRX_MODULE_PATH" : "correct GDRX_MODULE_PATH";
  return fail(Errc::unsupported, fmt::format("{}: {}; install {} and build again, or {}", file,
                                             reason, needs, instead));
}

Result<std::shared_ptr<Fabric>> open_fabric(std::string_view name, const Config& config,
                                            const Log&) {
  if (name != "ucx" && name != "tcp" && name != "verbs") {
    return fail(Errc::unsupported,
                fmt::format("there is no fabric '{}': use auto, ucx, tcp or verbs", name));
  }
  static std::mutex mutex;  // dlopen and the environment are the process's
  const std::lock_guard lock(mutex);
  if (name == "ucx") calm_ucx();
  const char* needs = name == "ucx"   ? "UCX (packages libucx0 and libucx-dev)"
                      : name == "tcp" ? "OpenSSL (packages libssl3 and libssl-dev)"
                                      : "rdma-core (packages libibverbs1 and libibverbs-dev)";
  void* module = GDRX_TRY(open_module(config, fmt::format("libgdrx-fabric-{}.so", name), needs));
  const auto entry = reinterpret_cast<decltype(&gdrx_fabric_v1)>(dlsym(module, kFabricSymbol));
  if (entry == nullptr || entry()->abi != kFabricAbi) {
    return fail(Errc::unsupported, fmt::format("libgdrx-fabric-{}.so is of another gdrx version: "
                                               "install both together",
                                               name));
  }
  return entry()->create();
}

}  // namespace gdrx
