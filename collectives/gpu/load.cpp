// SPDX-License-Identifier: Apache-2.0
#include "collectives/gpu/load.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <chrono>

#include "base/system_library.hpp"
#include "transport/fabric/module.hpp"

namespace gdrx::gpu {

// Asks the driver only if somebody else has loaded it: a host program must not pay for CUDA's
// start.
std::optional<int> current_device() {
  SystemLibrary driver = SystemLibrary::open({"libcuda.so.1"}, "", SystemLibrary::If::loaded);
  // Without a context it fails. The driver's devices are their ordinals.
  int (*get)(int*) = nullptr;
  int device = 0;
  const bool has = driver.take({{get, "cuCtxGetDevice"}}) && get(&device) == 0;
  return has ? std::optional(device) : std::nullopt;
}

Result<std::unique_ptr<Path>> open_path(const Config& config, std::optional<int> device) {
  if (!device) device = current_device();
  if (!device) {
    return fail(Errc::unsupported,
                "no CUDA context was current on the thread that made the communicator "
                "(cudaSetDevice and cudaFree(0) before it, or gdrxConfig_t.gpus)");
  }
  void* module = GDRX_TRY(open_module(config, kModuleFile, "the CUDA toolkit"));
  const auto entry = reinterpret_cast<decltype(&gdrx_cuda_v1)>(dlsym(module, kModuleSymbol));
  if (entry == nullptr || entry()->abi != kModuleAbi) {
    return fail(Errc::unsupported,
                fmt::format("{} is of another gdrx version: install both together", kModuleFile));
  }
  const auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(config.timeout);
  return entry()->create(*device, static_cast<std::uint64_t>(timeout.count()));
}

}  // namespace gdrx::gpu
