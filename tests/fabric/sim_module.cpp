// SPDX-License-Identifier: Apache-2.0
// The verbs fabric's module with the simulated HCA in the place of libibverbs: each rank that opens
// it is a host with two NICs of one live network of this process, or with SIM_NETWORK=NAME of all
// processes of this user on this machine that say that name.
#include <cstdlib>
#include <string_view>

#include "tests/fabric/network.hpp"
#include "transport/fabric/module.hpp"
#include "transport/verbs/fabric.hpp"

namespace {

constexpr int kNics = 2;

gdrx::sim::Network& network() {
  static auto* made = [] {  // outlives all ranks
    auto* network = new gdrx::sim::Network(gdrx::sim::Network::Mode::live);
    if (const char* name = std::getenv("SIM_NETWORK"); name != nullptr) network->join(name);
    return network;
  }();
  return *made;
}

// SIM_NIC_GPU: how the NICs reach GPU memory: "dma-buf" (and peermem, as if unset), "peermem"
// alone, or "none".
gdrx::sim::NicSettings settings_of_nics() {
  gdrx::sim::NicSettings settings;
  settings.nics = kNics;
  const char* word = std::getenv("SIM_NIC_GPU");
  const std::string_view gpu = word == nullptr ? "dma-buf" : word;
  settings.dma_buf = gpu == "dma-buf";
  settings.peermem = gpu != "none";
  return settings;
}

gdrx::Result<std::shared_ptr<gdrx::Fabric>> create() {
  auto host = network().add_host(settings_of_nics());
  if (!host) return gdrx::fail(gdrx::Errc::unsupported, "the simulated network is full");
  return gdrx::verbs::make_fabric(std::move(host));
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

// For tests: from here on NICs hold back what they write to a GPU until a read pushes it; 0: no
// more.
extern "C" __attribute__((visibility("default"))) void gdrx_sim_hold_gpu_writes(int hold) {
  network().set_fault(gdrx::sim::Fault::gpu_hold, hold != 0 ? 1 : 0);
}

// For tests: verbs objects that exist.
extern "C" __attribute__((visibility("default"))) std::size_t gdrx_sim_objects() {
  return network().live_objects();
}
