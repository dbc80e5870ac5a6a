// SPDX-License-Identifier: Apache-2.0
#include "transport/shm/fabric.hpp"

#include "transport/shm/device.hpp"

namespace gdrx::shm {
namespace {

class ShmFabric final : public Fabric {
 public:
  explicit ShmFabric(std::uint32_t ranks) : ranks_(ranks) {}
  std::string_view name() const noexcept override { return "shm"; }
  std::string describe() const override { return "memory that the ranks of a host share"; }
  Result<std::shared_ptr<Device>> open_device(Rank self, const Config&, const Log&) override {
    std::shared_ptr<Device> device = GDRX_TRY(ShmDevice::create(self, ranks_));
    return device;
  }

 private:
  std::uint32_t ranks_;
};

}  // namespace

std::shared_ptr<Fabric> make_fabric(std::uint32_t ranks) {
  return std::make_shared<ShmFabric>(ranks);
}

}  // namespace gdrx::shm
