// SPDX-License-Identifier: Apache-2.0
#include "transport/fabric/module.hpp"
#include "transport/ucx/device.hpp"

namespace gdrx::ucx {
namespace {

class UcxFabric final : public Fabric {
 public:
  std::string_view name() const noexcept override { return "ucx"; }
  std::string describe() const override { return std::string("UCX ") + ucp_get_version_string(); }
  Result<std::shared_ptr<Device>> open_device(Rank self, const Config& config,
                                              const Log& log) override {
    std::shared_ptr<Device> device = GDRX_TRY(UcxDevice::create(self, config));
    log.info("rank {}: {}", index(self), describe());
    return device;
  }
};

Result<std::shared_ptr<Fabric>> create() {
  return std::shared_ptr<Fabric>(std::make_shared<UcxFabric>());
}

}  // namespace
}  // namespace gdrx::ucx

const gdrx::FabricModule* gdrx_fabric_v1() {
  static const gdrx::FabricModule module{gdrx::kFabricAbi, &gdrx::ucx::create};
  return &module;
}
