// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/runs.hpp"

namespace gdrx::tools {

bool is_of_gpus(Route route) noexcept { return route == Route::gpu_kernel; }

std::vector<Words> runs_of(Route route, std::span<const std::string> transports) {
  switch (route) {
    case Route::host: {
      std::vector<Words> runs;
      for (const std::string& transport : transports) {
        runs.push_back({"--transport", transport, "--algo", "all"});
      }
      return runs;
    }
    case Route::gpu_kernel:
      return {{"--memory", "cuda", "--mode", "graph", "--algo", "one-shot,two-shot,ring,tree"},
              {"--memory", "cuda", "--mode", "graph", "--algo", "direct", "--register"}};
    case Route::gpu_hosts:  // of several hosts, and chosen by the model
    case Route::staged:     // as host memory is carried
    case Route::nothing:
    case Route::undecided:
      break;
  }
  return {};
}

}  // namespace gdrx::tools
