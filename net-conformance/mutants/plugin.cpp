// SPDX-License-Identifier: Apache-2.0
// libnccl-net-mutant.so: the plugin NET_MUTANT_BASE with the one fault that NET_MUTANT names.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "net-conformance/mutants/track.hpp"

extern "C" {
__attribute__((visibility("default"))) gdrx::nccl::NetV12 ncclNetPlugin_v12;
}

namespace gdrx::mutants {
namespace {

const Mutant* find(std::string_view name) {
  for (const auto part :
       {device_mutants(), connect_mutants(), life_mutants(), transfer_mutants(), memory_mutants(),
        request_mutants(), group_mutants(), close_mutants(), fork_mutants()}) {
    const auto at =
        std::ranges::find_if(part, [&](const Mutant& mutant) { return name == mutant.name; });
    if (at != part.end()) {
      return &*at;
    }
  }
  return nullptr;
}

__attribute__((constructor)) void choose() {
  ncclNetPlugin_v12 = good();
  const char* name = std::getenv("NET_MUTANT");
  if (name == nullptr) {
    return;  // no fault: the wrapper by itself has to keep all rules
  }
  const Mutant* mutant = find(name);
  if (mutant == nullptr) {
    std::fprintf(stderr, "there is no mutant %s\n", name);
    std::abort();
  }
  mutant->spoil(ncclNetPlugin_v12);
}

}  // namespace
}  // namespace gdrx::mutants
