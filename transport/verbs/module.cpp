// SPDX-License-Identifier: Apache-2.0
#include "transport/fabric/module.hpp"
#include "transport/verbs/fabric.hpp"

namespace {

gdrx::Result<std::shared_ptr<gdrx::Fabric>> create() {
  return gdrx::verbs::make_fabric(GDRX_TRY(gdrx::verbs::load_verbs()));
}

}  // namespace

const gdrx::FabricModule* gdrx_fabric_v1() {
  static const gdrx::FabricModule module{gdrx::kFabricAbi, &create};
  return &module;
}
