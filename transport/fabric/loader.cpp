// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <csignal>
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

// UCX takes over fatal signals and SIGHUP when it is loaded. Its variables that stop it cannot be
// set from here: setenv() in a process with threads is a data race. So the signals are given back,
// but for those whose variable the user has set.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      sigaction(static_cast<int>(i), nullptr, &actions_[i]);
    }
  }
  ~KeptSignals() {
    if (std::getenv("UCX_HANDLE_ERRORS") != nullptr) return;
    const char* wanted = std::getenv("UCX_DEBUG_SIGNO");
    const std::size_t debug = wanted == nullptr ? 0 : std::strtoul(wanted, nullptr, 10);
    for (std::size_t i = 1; i < actions_.size(); ++i) {
      if (i == debug) continue;
      struct sigaction now {};
      const int number = static_cast<int>(i);
      if (sigaction(number, nullptr, &now) != 0) continue;
      if (now.sa_sigaction != actions_[i].sa_sigaction) sigaction(number, &actions_[i], nullptr);
    }
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::array<struct sigaction, NSIG> actions_{};
};

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
    return fail(Errc::unsupported, fmt::format("{} '{}': use auto, ucx, tcp or verbs",
                                               name == "shm" ? "only a communicator has a fabric"
                                                             : "there is no fabric",
                                               name));
  }
  static std::mutex mutex;  // signals are the process's
  const std::lock_guard lock(mutex);
  const char* needs = name == "ucx"   ? "UCX (packages libucx0 and libucx-dev)"
                      : name == "tcp" ? "OpenSSL (packages libssl3 and libssl-dev)"
                                      : "rdma-core (packages libibverbs1 and libibverbs-dev)";
  void* module = nullptr;
  {
    const KeptSignals kept;
    module = GDRX_TRY(open_module(config, fmt::format("libgdrx-fabric-{}.so", name), needs));
  }
  const auto entry = reinterpret_cast<decltype(&gdrx_fabric_v1)>(dlsym(module, kFabricSymbol));
  if (entry == nullptr || entry()->abi != kFabricAbi) {
    return fail(Errc::unsupported, fmt::format("libgdrx-fabric-{}.so is of another gdrx version: "
                                               "install both together",
                                               name));
  }
  return entry()->create();
}

}  // namespace gdrx
