// SPDX-License-Identifier: Apache-2.0
#include "nccl/settings.hpp"

#include <array>
#include <string_view>

#include "gdrx/config.hpp"
#include "nccl/abi.hpp"
#include "nccl/errors.hpp"

namespace gdrx::nccl {
namespace {

bool asks_for_warnings(std::string_view variable) {
  constexpr std::array<std::string_view, 4> kAsking{"NCCL_DEBUG=WARN", "NCCL_DEBUG=INFO",
                                                    "NCCL_DEBUG=ABORT", "NCCL_DEBUG=TRACE"};
  for (const std::string_view asking : kAsking) {
    if (variable == asking) return true;
  }
  return false;
}

Settings read() noexcept {
  Settings found;
  found.version = gdrx::Config{}.nccl_version;
  try {
    const Environment environment = process_environment();
    for (const std::string& variable : environment) {
      found.prints = found.prints || asks_for_warnings(variable);
    }
    // A value that is not allowed is told where a communicator is made.
    if (const auto loaded = load_config(environment)) found.version = loaded->config.nccl_version;
  } catch (...) {  // no memory: as if nothing was set
  }
  return found;
}

}  // namespace

const Settings& settings() noexcept {
  static const Settings kSettings = read();
  return kSettings;
}

}  // namespace gdrx::nccl

using namespace gdrx::nccl;  // NOLINT: this file defines its function

GDRX_NCCL(ncclGetVersion, int* version) {
  if (version == nullptr) return deny("ncclGetVersion", kInvalidArgument, "version is NULL");
  *version = settings().version;
  return kSuccess;
}
