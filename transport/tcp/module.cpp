// SPDX-License-Identifier: Apache-2.0
#include "transport/fabric/module.hpp"
#include "transport/tcp/fabric.hpp"

namespace {

gdrx::Result<std::shared_ptr<gdrx::Fabric>> create() { return gdrx::tcp::make_fabric(); }

}  // namespace

const gdrx::FabricModule* gdrx_fabric_v1() {
  static const gdrx::FabricModule module{gdrx::kFabricAbi, &create};
  return &module;
}
