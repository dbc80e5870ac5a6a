// SPDX-License-Identifier: Apache-2.0
#include "base/thread_cpus.hpp"
#include "transport/verbs/device.hpp"

namespace gdrx::verbs {

std::vector<int> VerbsDevice::near_cpus() const {
  std::vector<std::string> folders;
  for (const auto& rail : core_.rails) folders.push_back(rail->pci_folder());
  return cpus_near(folders);
}

void VerbsDevice::place_helper() {
  ThreadHome home{core_.options.thread_cpus, {}, core_.log};
  if (home.setting == "auto") home.near.push_back(near_cpus());
  core_.helper.belong(std::move(home));
}

}  // namespace gdrx::verbs
