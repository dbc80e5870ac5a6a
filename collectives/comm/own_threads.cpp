// SPDX-License-Identifier: Apache-2.0
#include "collectives/comm/own_threads.hpp"

#include "base/thread_cpus.hpp"

namespace gdrx {

void place_progress(ControlMesh& mesh, const Device* device, const gpu::Path* gpu,
                    const Settings& settings) {
  mesh.place_thread([&](pthread_t thread) {
    ThreadHome home{settings.config.thread_cpus, {}, settings.log};
    if (home.setting == "auto") {
      if (device != nullptr) home.near.push_back(device->near_cpus());
      if (gpu != nullptr) home.near.push_back(cpus_near({gpu->pci_folder()}));
    }
    place_thread(thread, "gdrx-progress", home);
  });
}

}  // namespace gdrx
