// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/fabric.hpp"

#include <sys/random.h>

#include "transport/verbs/device.hpp"

namespace gdrx::verbs {
namespace {

class VerbsFabric final : public Fabric {
 public:
  explicit VerbsFabric(std::shared_ptr<const VerbsTable> table) : table_(std::move(table)) {}
  std::string_view name() const noexcept override { return "verbs"; }
  std::string describe() const override { return "verbs (libibverbs, reliable connections)"; }
  Result<std::shared_ptr<Device>> open_device(Rank self, const Config& config,
                                              const Log& log) override {
    const Options options = GDRX_TRY(Options::from(config));
    std::uint64_t nonce = 0;
    if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) {
      return fail(Errc::system, "getrandom", errno);
    }
    auto device = GDRX_TRY(VerbsDevice::create(table_, self, options, steady_clock(), log, nonce));
    log.info("rank {}: {}: {}, {} QPs a rail", index(self), describe(), device->ports(),
             options.qps);
    return std::shared_ptr<Device>(std::move(device));
  }

 private:
  std::shared_ptr<const VerbsTable> table_;
};

}  // namespace

std::shared_ptr<Fabric> make_fabric(std::shared_ptr<const VerbsTable> table) {
  return std::make_shared<VerbsFabric>(std::move(table));
}

}  // namespace gdrx::verbs
