// SPDX-License-Identifier: Apache-2.0
// The one symbol that a fabric module exports.
#pragma once

#include <memory>

#include "gdrx/transport.hpp"

namespace gdrx {

/// Bumped whenever transport.hpp changes what a module must implement.
inline constexpr int kFabricAbi = 2;
inline constexpr const char* kFabricSymbol = "gdrx_fabric_v1";

struct FabricModule {
  int abi = kFabricAbi;
  Result<std::shared_ptr<Fabric>> (*create)() = nullptr;
};

}  // namespace gdrx

extern "C" __attribute__((visibility("default"))) const gdrx::FabricModule* gdrx_fabric_v1();
