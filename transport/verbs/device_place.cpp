// SPDX-License-Identifier: Apache-2.0
#include "base/thread_cpus.hpp"
#include "transport/verbs/device.hpp"

namespace gdrx::verbs {

std::vector<int> VerbsDevice::near_cpus() const {
  std::vector<std::string> folders;
  for (const auto& rail : core_.rails) folders.push_back(rail->pci_folder());
  return cpus_near(folders);
}

}  // namespace gdrx::verbs
