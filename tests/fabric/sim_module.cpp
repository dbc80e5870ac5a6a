// SPDX-License-Identifier: Apache-2.0
// The verbs fabric's module with the simulated HCA in the place of libibverbs: each rank that opens
// it is a host with two NICs of one live network of this process, or with SIM_NETWORK=NAME of all
// processes of this user on this machine that say that name.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

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
// alone, or "none". SIM_NIC_FOLDER: the NICs' folder in sysfs.
gdrx::sim::NicSettings settings_of_nics() {
  gdrx::sim::NicSettings settings;
  settings.nics = kNics;
  const char* word = std::getenv("SIM_NIC_GPU");
  const std::string_view gpu = word == nullptr ? "dma-buf" : word;
  settings.dma_buf = gpu == "dma-buf";
  settings.peermem = gpu != "none";
  if (const char* folder = std::getenv("SIM_NIC_FOLDER")) {
    settings.pci_folders.assign(kNics, folder);
  }
  return settings;
}

std::atomic<int> registration_time{0};  // ms

// Of a driver that pins many pages.
void take_time() {
  std::this_thread::sleep_for(std::chrono::milliseconds(registration_time.load()));
}

gdrx::Result<std::shared_ptr<gdrx::Fabric>> create() {
  auto host = network().add_host(settings_of_nics());
  if (!host) return gdrx::fail(gdrx::Errc::unsupported, "the simulated network is full");
  auto table = std::make_shared<gdrx::verbs::VerbsTable>(*host);
  table->reg_mr = [host](ibv_pd* pd, void* data, std::size_t size, int access) {
    take_time();
    return host->reg_mr(pd, data, size, access);
  };
  table->dereg_mr = [host](ibv_mr* mr) {
    take_time();
    return host->dereg_mr(mr);
  };
  return gdrx::verbs::make_fabric(std::move(table));
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

// For tests: from here on memory is registered and deregistered in so many milliseconds.
extern "C" __attribute__((visibility("default"))) void gdrx_sim_slow_registration(int ms) {
  registration_time = ms;
}

// For tests: verbs objects that exist.
extern "C" __attribute__((visibility("default"))) std::size_t gdrx_sim_objects() {
  return network().live_objects();
}
