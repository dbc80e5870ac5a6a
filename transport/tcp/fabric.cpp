// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp/fabric.hpp"

#include "transport/tcp/device.hpp"

namespace gdrx::tcp {
namespace {

class TcpFabric final : public Fabric {
 public:
  std::string_view name() const noexcept override { return "tcp"; }
  std::string describe() const override { return "TCP, TLS 1.3 by OpenSSL"; }
  Result<std::shared_ptr<Device>> open_device(Rank self, const Config& config,
                                              const Log& log) override {
    std::shared_ptr<Device> device = GDRX_TRY(TcpDevice::create(self, config, log));
    log.info("rank {}: {}", index(self), device->describe());
    return device;
  }
};

}  // namespace

std::shared_ptr<Fabric> make_fabric() { return std::make_shared<TcpFabric>(); }

}  // namespace gdrx::tcp
