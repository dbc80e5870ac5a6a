// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/load.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>

#include "transport/fabric/module.hpp"

namespace gdrx::gpu {
namespace {

// Asks the driver only if somebody else has loaded it: a host program must not pay for CUDA's
// start.
bool has_current_context() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  const auto get = reinterpret_cast<int (*)(void**)>(dlsym(driver, "cuCtxGetCurrent"));
  void* context = nullptr;
  const bool has = get != nullptr && get(&context) == 0 && context != nullptr;
  dlclose(driver);
  return has;
}

}  // namespace

Result<std::unique_ptr<Path>> open_path(const Config& config) {
  if (!has_current_context()) {
    return fail(Errc::unsupported, "no CUDA context is current on this thread");
  }
  void* module = GDRX_TRY(open_module(config, kModuleFile, "the CUDA toolkit"));
  const auto entry = reinterpret_cast<decltype(&gdrx_cuda_v1)>(dlsym(module, kModuleSymbol));
  if (entry == nullptr || entry()->abi != kModuleAbi) {
    return fail(Errc::unsupported,
                fmt::format("{} is of another gdrx version: install both together", kModuleFile));
  }
  const auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(config.timeout);
  return entry()->create(static_cast<std::uint64_t>(timeout.count()));
}

}  // namespace gdrx::gpu
