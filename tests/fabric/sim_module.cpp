// SPDX-License-Identifier: Apache-2.0
// The verbs fabric's module with the simulated HCA in the place of libibverbs: each rank that opens
// it is a host with two NICs of one live network of this process.
#include "tests/fabric/network.hpp"
#include "transport/fabric/module.hpp"
#include "transport/verbs/fabric.hpp"

namespace {

constexpr int kNics = 2;

gdrx::sim::Network& network() {
  static auto* made = new gdrx::sim::Network(gdrx::sim::Network::Mode::live);  // outlives all ranks
  return *made;
}

gdrx::Result<std::shared_ptr<gdrx::Fabric>> create() {
  gdrx::sim::NicSettings settings;
  settings.nics = kNics;
  return gdrx::verbs::make_fabric(network().add_host(settings));
}

}  // namespace

const gdrx::FabricModule* gdrx_fabric_v1() {
  static const gdrx::FabricModule module{gdrx::kFabricAbi, &create};
  return &module;
}

// For tests: takes one NIC of every host down, or brings it back.
extern "C" __attribute__((visibility("default"))) void gdrx_sim_set_rail(int nic, int up) {
  const int hosts = network().hosts();
  for (int host = 0; host < hosts; ++host) network().set_port(host, nic, up != 0);
}
