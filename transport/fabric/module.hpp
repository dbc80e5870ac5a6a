// SPDX-License-Identifier: Apache-2.0
// The one symbol that a fabric module exports.
#pragma once

#include <memory>
#include <string>

#include "gdrx/transport.hpp"

namespace gdrx {

/// The first number is bumped whenever transport.hpp changes what a module must implement. A module
/// reads the Config that it is handed, so that one of another layout is refused, too.
inline constexpr int kFabricAbi = 5 * 65536 + static_cast<int>(sizeof(Config));
inline constexpr const char* kFabricSymbol = "gdrx_fabric_v1";

struct FabricModule {
  int abi = kFabricAbi;
  Result<std::shared_ptr<Fabric>> (*create)() = nullptr;
};

/// dlopens a module of ours, found beside this code or in GDRX_MODULE_PATH; it stays loaded.
/// `needs`: what must be installed for it, for the message of Errc::unsupported.
Result<void*> open_module(const Config& config, const std::string& file, const char* needs);

}  // namespace gdrx

extern "C" __attribute__((visibility("default"))) const gdrx::FabricModule* gdrx_fabric_v1();
